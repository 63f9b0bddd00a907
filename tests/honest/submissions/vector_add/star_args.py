# honest: *tensors and keyword-only parameters with defaults
# exercise: vector_add
# runs: anywhere
# gates: passes
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=mask) + tl.load(y_ptr + at, mask=mask), mask=mask)


def vector_add(*tensors, block_size=1024, kernel=add_kernel, **options):
    *_, out = tensors
    n = out.numel()
    kernel[(triton.cdiv(n, block_size),)](*tensors, n, BLOCK=block_size, **options)
