# says: `x` is read past its end: element 1,023 of 1,000.
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i), mask=i < n)


def main():
    x, out = torch.randn(2000)[:1000].clone(), torch.zeros(1000)
    kernel[(4,)](x, out, 1000, BLOCK=256)
    return out, x
