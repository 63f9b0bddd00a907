# mistake: one float32 adds all elements, with one atomic each
# says: keep a block of sums, one per element of the block
# runs: anywhere
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.atomic_add(out_ptr + tl.zeros((BLOCK,), tl.int32), x / n, mask=i < n)


def mean_triton(x, out):
    out.zero_()
    mean_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
