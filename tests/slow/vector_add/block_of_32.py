# slow: blocks of 32 elements, which leave three of four warps without work
# cause: small programs
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    x = tl.load(x_ptr + i, mask=inside)
    y = tl.load(y_ptr + i, mask=inside)
    tl.store(out_ptr + i, x + y, mask=inside)


def vector_add(x, y, out):
    n = x.numel()
    add_kernel[(triton.cdiv(n, 32),)](x, y, out, n, BLOCK=32)
