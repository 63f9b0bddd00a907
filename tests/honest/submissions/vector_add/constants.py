# honest: tl.constexpr globals, typed and not, and no parameter for the block
# exercise: vector_add
# runs: anywhere
# gates: passes
import triton
import triton.language as tl

BLOCK: tl.constexpr = tl.constexpr(1024)
HALF = tl.constexpr(BLOCK.value // 2)
WARPS = 4


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n):
    at = tl.program_id(0) * (2 * HALF) + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=mask) + tl.load(y_ptr + at, mask=mask), mask=mask)


def vector_add(x, y, out):
    n = x.numel()
    add_kernel[(triton.cdiv(n, BLOCK.value),)](x, y, out, n, num_warps=WARPS)
