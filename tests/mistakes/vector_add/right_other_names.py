# right: Triton's language under another name, a list as the grid, `not` of a block
# runs: anywhere

import triton
import triton.language as T


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, SIZE: T.constexpr):
    i = T.program_id(0) * SIZE + T.arange(0, SIZE)
    outside = i >= n
    inside = not outside
    T.store(out_ptr + i, T.load(x_ptr + i, inside) + T.load(y_ptr + i, inside), inside)


def vector_add(x, y, out):
    add_kernel[lambda meta: [triton.cdiv(x.numel(), meta["SIZE"])]](x, y, out, x.numel(), SIZE=512)
