# honest: a grid of two dimensions, most programs of its last row without work
# exercise: vector_add
# runs: anywhere
# gates: passes
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    program = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    if program * BLOCK >= n:
        return
    at = program * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=mask) + tl.load(y_ptr + at, mask=mask), mask=mask)


def vector_add(x, y, out):
    n = x.numel()
    programs = triton.cdiv(n, 1024)
    across = min(programs, 256)
    add_kernel[(across, triton.cdiv(programs, across))](x, y, out, n, BLOCK=1024)
