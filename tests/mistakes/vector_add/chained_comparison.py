# mistake: the mask is a chained comparison
# says: simultaneous multiple comparison is not supported
# runs: anywhere

import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, SIZE: tl.constexpr):
    start = tl.program_id(0) * SIZE
    i = start + tl.arange(0, SIZE)
    inside = (start <= i) & (i < n)
    if 0 <= start < n:
        tl.store(out_ptr + i, tl.load(x_ptr + i, inside) + tl.load(y_ptr + i, inside), inside)


def vector_add(x, y, out):
    add_kernel[(triton.cdiv(x.numel(), 512),)](x, y, out, x.numel(), SIZE=512)
