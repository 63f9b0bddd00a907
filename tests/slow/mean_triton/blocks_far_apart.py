# slow: the elements of a block lie a whole number of blocks apart
# cause: wasted sectors
import triton
import triton.language as tl


@triton.jit
def sums_kernel(x_ptr, sums_ptr, n, step, BLOCK: tl.constexpr):
    i = tl.program_id(0) + tl.arange(0, BLOCK) * step
    tl.store(sums_ptr + tl.program_id(0), tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0), axis=0))


@triton.jit
def last_kernel(sums_ptr, out_ptr, blocks, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float64)
    for start in range(0, blocks, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.load(sums_ptr + i, mask=i < blocks, other=0.0).to(tl.float64)
    tl.store(out_ptr, (tl.sum(total, axis=0) / n).to(tl.float32))


def mean_triton(x, out):
    n = x.numel()
    blocks = triton.cdiv(n, 1024)
    sums = x.new_empty(blocks)
    sums_kernel[(blocks,)](x, sums, n, blocks, BLOCK=1024)
    last_kernel[(1,)](sums, out, blocks, n, BLOCK=1024)
