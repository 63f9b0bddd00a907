# mistake: blocks and threads in the brackets, as in Numba
# says: a Triton grid counts programs and has no threads
# runs: simulator

import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    i = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask)
    y = tl.load(y_ptr + i, mask=mask)
    tl.store(out_ptr + i, x + y, mask=mask)


def vector_add(x, y, out):
    add_kernel[triton.cdiv(x.numel(), 1024), 1024](x, y, out, x.numel(), BLOCK_SIZE=1024)
