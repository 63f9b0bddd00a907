# slow: each program takes every programs-th element, so that its elements lie far apart
# cause: wasted sectors
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, programs, BLOCK: tl.constexpr):
    i = tl.program_id(0) + tl.arange(0, BLOCK) * programs
    inside = i < n
    x = tl.load(x_ptr + i, mask=inside)
    y = tl.load(y_ptr + i, mask=inside)
    tl.store(out_ptr + i, x + y, mask=inside)


def vector_add(x, y, out):
    n = x.numel()
    programs = triton.cdiv(n, 1024)
    add_kernel[(programs,)](x, y, out, n, programs, BLOCK=1024)
