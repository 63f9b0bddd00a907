# mistake: a loop in the kernel goes over a tuple
# says: A `for` loop in a kernel can only go over `range`, `tl.range` or `tl.static_range`.
# runs: anywhere

import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    total = tl.zeros((SIZE,), tl.float32)
    for ptr in (x_ptr, y_ptr):
        total += tl.load(ptr + i, i < n)
    tl.store(out_ptr + i, total, i < n)


def vector_add(x, y, out):
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), SIZE=1024)
