# honest: functools: a partial as the entry point, lru_cache, reduce, operator
# exercise: vector_add
# runs: anywhere
# gates: passes
import functools
import operator

import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=mask) + tl.load(y_ptr + at, mask=mask), mask=mask)


@functools.lru_cache(maxsize=None)
def blocks_of(n, block):
    return -(-n // block)


def launch(x, y, out, *, block, warps):
    n = functools.reduce(operator.mul, x.shape, 1)
    add_kernel[(blocks_of(n, block),)](x, y, out, n, BLOCK=block, num_warps=warps)


vector_add = functools.partial(launch, block=1024, warps=4)
