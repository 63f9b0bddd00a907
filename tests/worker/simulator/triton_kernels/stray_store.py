# says: `sums` is written past its end: element 3 of 3.
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, sums_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(sums_ptr + tl.program_id(0), tl.sum(tl.load(x_ptr + i), axis=0))


def main():
    x, sums = torch.randn(256), torch.zeros(3)
    kernel[(4,)](x, sums, BLOCK=64)
    return sums, x.view(4, 64).sum(1)[:3]
