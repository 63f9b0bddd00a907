# mistake: the kernel is called without a grid
# says: A kernel or a `tl` function was called like a Python function.
# runs: anywhere

import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


def vector_add(x, y, out):
    add_kernel(x, y, out, x.numel(), BLOCK=1024)
