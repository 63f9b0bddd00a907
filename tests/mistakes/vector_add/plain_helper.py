# mistake: a helper of the kernel is a plain function
# says: Unsupported function referenced
# runs: anywhere

import triton
import triton.language as tl


def offsets_of(pid, SIZE: tl.constexpr):
    return pid * SIZE + tl.arange(0, SIZE)


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, SIZE: tl.constexpr):
    i = offsets_of(tl.program_id(0), SIZE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, i < n) + tl.load(y_ptr + i, i < n), i < n)


def vector_add(x, y, out):
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), SIZE=1024)
