# says: `x` is read before its start: element -1 of 128.
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    left = tl.where(i > 0, tl.load(x_ptr + i - 1, mask=i < n), 0.0)
    tl.store(out_ptr + i, left, mask=i < n)


def main():
    x, out = torch.randn(128), torch.zeros(128)
    kernel[(2,)](x, out, 128, BLOCK=64)
    return out, torch.cat([torch.zeros(1), x[:-1]])
