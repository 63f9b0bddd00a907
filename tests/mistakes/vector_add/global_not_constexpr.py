# mistake: the kernel reads a global variable that is not a constexpr
# says: Cannot access global variable BLOCK
# runs: anywhere

import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, inside) + tl.load(y_ptr + i, inside), inside)


def vector_add(x, y, out):
    add_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, y, out, x.numel())
