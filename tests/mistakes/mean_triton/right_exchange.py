# right: one program, which exchanges its result for what is in `out`
# runs: anywhere
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        sums += tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.atomic_xchg(out_ptr, tl.sum(sums) / n)


def mean_triton(x, out):
    mean_kernel[(1,)](x, out, x.numel(), BLOCK=4096)
