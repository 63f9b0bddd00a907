# right: `out` is set to 0, and each program adds its share with one atomic addition
# runs: anywhere
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, BLOCKS: tl.constexpr):
    first = tl.program_id(0) * BLOCK * BLOCKS
    sums = tl.zeros((BLOCK,), tl.float32)
    for number in tl.static_range(BLOCKS):
        i = first + number * BLOCK + tl.arange(0, BLOCK)
        sums += tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.atomic_add(out_ptr, tl.sum(sums, axis=0) / n)


def mean_triton(x, out):
    n = x.numel()
    out.zero_()
    mean_kernel[(triton.cdiv(n, 4 * 2048),)](x, out, n, BLOCK=2048, BLOCKS=4)
