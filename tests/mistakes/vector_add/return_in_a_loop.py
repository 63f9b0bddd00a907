# mistake: return ends a loop in the kernel
# says: A loop in a kernel has no `break`, no `continue` and no `return`.
# runs: anywhere

import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, SIZE: tl.constexpr):
    for step in range(4):
        start = (tl.program_id(0) * 4 + step) * SIZE
        if start >= n:
            return
        i = start + tl.arange(0, SIZE)
        tl.store(out_ptr + i, tl.load(x_ptr + i, i < n) + tl.load(y_ptr + i, i < n), i < n)


def vector_add(x, y, out):
    add_kernel[(triton.cdiv(x.numel(), 4096),)](x, y, out, x.numel(), SIZE=1024)
