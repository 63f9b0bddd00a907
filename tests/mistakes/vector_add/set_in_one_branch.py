# mistake: a variable has a value only inside of an if
# says: A variable that is first set in a loop, or in one branch of an `if`, does not exist after it.
# runs: anywhere

import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, SIZE: tl.constexpr):
    first = tl.program_id(0) * SIZE
    i = first + tl.arange(0, SIZE)
    if first < n:
        total = tl.load(x_ptr + i, i < n) + tl.load(y_ptr + i, i < n)
    tl.store(out_ptr + i, total, i < n)


def vector_add(x, y, out):
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), SIZE=1024)
