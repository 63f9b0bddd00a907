# right: floating-point numbers are exchanged by an atomic, which returns the old ones
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    old = tl.atomic_xchg(out_ptr + at, tl.load(x_ptr + at))
    tl.store(out_ptr + SIZE + at, old)


def main():
    x = torch.randn(32)
    out = torch.arange(64, dtype=torch.float32)
    right = torch.cat([x, out[:32]])
    kernel[(1,)](x, out, 32)
    return out, right
