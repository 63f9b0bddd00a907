# right: a flag and a factor that are not constexpr
# runs: anywhere

import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, scale, subtracts, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    inside = i < n
    y = scale * tl.load(y_ptr + i, mask=inside)
    if subtracts:
        y = -y
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=inside) + y, mask=inside)


def vector_add(x, y, out):
    add_kernel[(triton.cdiv(x.numel(), 256),)](x, y, out, x.numel(), 1.0, False, SIZE=256)
