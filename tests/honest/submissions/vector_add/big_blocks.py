# honest: blocks of 4096 elements, hints for the caches and for the compiler
# exercise: vector_add
# runs: anywhere
# gates: may miss
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.max_contiguous(tl.multiple_of(tl.arange(0, BLOCK), BLOCK), BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask=mask, eviction_policy="evict_first")
    y = tl.load(y_ptr + at, mask=mask, eviction_policy="evict_first")
    tl.store(out_ptr + at, x + y, mask=mask, cache_modifier=".cs")


def vector_add(x, y, out):
    n = x.numel()
    add_kernel[(triton.cdiv(n, 4096),)](x, y, out, n, BLOCK=4096, num_warps=8)
