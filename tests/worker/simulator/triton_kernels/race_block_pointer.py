# says: A race: program 0 stores to `out[0, 0]` and program 1 loads it
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, rows, BLOCK: tl.constexpr):
    x = tl.make_block_ptr(x_ptr, (rows, 16), (16, 1), (tl.program_id(0) * BLOCK, 0), (BLOCK, 16), (1, 0))
    out = tl.make_block_ptr(out_ptr, (1, 16), (16, 1), (0, 0), (1, 16), (1, 0))
    sums = tl.sum(tl.load(x, boundary_check=(0,), padding_option="zero"), axis=0)[None, :]
    tl.store(out, tl.load(out) + sums)


def main():
    x, out = torch.randn(20, 16), torch.zeros(1, 16)
    kernel[(3,)](x, out, 20, BLOCK=8)
    return out, x.sum(0, keepdim=True)
