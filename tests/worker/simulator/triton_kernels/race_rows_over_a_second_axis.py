# says: A race: program (0, 0) stores to `out[0]` and program (0, 1) loads it
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x_ptr + row * columns + i, mask=i < columns, other=0.0), axis=0)
    tl.store(out_ptr + row, tl.load(out_ptr + row) + part)


def main():
    x, out = torch.randn(3, 100), torch.zeros(3)
    kernel[(3, 2)](x, out, 100, BLOCK=64)
    return out, x.sum(1)
