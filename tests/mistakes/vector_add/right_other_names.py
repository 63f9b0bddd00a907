# right: Triton's language and its constants under other names, a list as the grid, `not` of a block
# runs: anywhere

import triton
import triton.language as T

Constant = T.constexpr


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, SIZE: T.constexpr, PARTS: Constant):
    i = T.program_id(0) * SIZE * PARTS + T.arange(0, SIZE * PARTS)
    outside = i >= n
    inside = not outside
    T.store(out_ptr + i, T.load(x_ptr + i, inside) + T.load(y_ptr + i, inside), inside)


def vector_add(x, y, out):
    add_kernel[lambda meta: [triton.cdiv(x.numel(), 2 * meta["SIZE"])]](x, y, out, x.numel(), SIZE=256, PARTS=2)
