# honest: the first call takes three seconds more than all others
# exercise: vector_add
# runs: anywhere
# gates: passes
import time

import triton
import triton.language as tl

ready = False


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=mask) + tl.load(y_ptr + at, mask=mask), mask=mask)


def vector_add(x, y, out):
    global ready
    if not ready:
        time.sleep(3)  # stands for whatever a first call may do: read a file, search for a library
        ready = True
    n = x.numel()
    add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
