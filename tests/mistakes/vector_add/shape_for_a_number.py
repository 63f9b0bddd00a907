# mistake: the shape is taken for the number of elements
# says: `x.numel()` is the number of elements
# runs: anywhere

import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    block_start = tl.program_id(0) * BLOCK_SIZE
    offsets = block_start + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)  # reads n in all
    y = tl.load(y_ptr + offsets, mask=mask)  # reads n in all
    tl.store(out_ptr + offsets, x + y, mask=mask)  # writes n in all


def vector_add(x, y, out):
    n = x.shape
    block_size = 1024
    grid = (triton.cdiv(n, block_size),)
    add_kernel[grid](x, y, out, n, BLOCK_SIZE=block_size)
