# says: A race: program 0 stores to `out[0]` and program 1 loads it, both in line 10.
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr, tl.load(out_ptr) + tl.sum(tl.load(x_ptr + i, i < n, 0.0)))


def main():
    x, out = torch.ones(1000), torch.zeros(1)
    kernel[(4,)](x, out, 1000, BLOCK=256)
    return out, x.sum()
