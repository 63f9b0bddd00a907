# slow: one program adds up everything
# cause: few programs
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        total += tl.load(x_ptr + start + i, mask=start + i < n, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / n)


def mean_triton(x, out):
    mean_kernel[(1,)](x, out, x.numel(), BLOCK=8192, num_warps=16)
