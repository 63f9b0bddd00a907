# mistake: each program's mean includes its masked elements
# says: The sum was divided by the length rounded up to whole blocks
# runs: anywhere
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.atomic_add(out_ptr, tl.sum(x) / BLOCK / tl.num_programs(0))


def mean_triton(x, out):
    out.zero_()
    mean_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
