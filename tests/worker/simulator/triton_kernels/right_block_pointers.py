# right: a transpose with block pointers
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    r, c = tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK
    x = tl.make_block_ptr(x_ptr, (rows, columns), (columns, 1), (r, c), (BLOCK, BLOCK), (1, 0))
    out = tl.make_block_ptr(out_ptr, (columns, rows), (rows, 1), (c, r), (BLOCK, BLOCK), (1, 0))
    tl.store(out, tl.trans(tl.load(x, boundary_check=(0, 1))), boundary_check=(0, 1))


def main():
    x, out = torch.randn(50, 37), torch.empty(37, 50)
    kernel[(4, 3)](x, out, 50, 37, BLOCK=16)
    return out, x.T
