# slow: a loop on the host launches the kernel for each part of the vector
# cause: many launches
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, start, n, BLOCK: tl.constexpr):
    i = start + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    y = tl.load(y_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x + y, mask=i < n)


def vector_add(x, y, out):
    n = x.numel()
    for start in range(0, n, 8192):
        add_kernel[(1,)](x, y, out, start, n, BLOCK=8192)
