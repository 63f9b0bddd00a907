# says: One `tl.store` writes several different values to `out[0]`: which one is left is undefined.
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + 0 * i, tl.cumsum(tl.load(x_ptr + i), axis=0))


def main():
    x, out = torch.ones(64), torch.zeros(1)
    kernel[(1,)](x, out, BLOCK=64)
    return out, x.sum()
