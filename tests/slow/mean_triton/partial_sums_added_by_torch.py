# slow: converts the vector to float64 before its kernel adds it up
# cause: extra operations
import triton
import triton.language as tl


@triton.jit
def sums_kernel(x_ptr, sums_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(sums_ptr + tl.program_id(0), tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0), axis=0))


def mean_triton(x, out):
    n = x.numel()
    wide = x.double()
    blocks = triton.cdiv(n, 4096)
    sums = wide.new_empty(blocks)
    sums_kernel[(blocks,)](wide, sums, n, BLOCK=4096)
    out.copy_(sums.sum() / n)
