# right: a running maximum and sum for each place of a piece, combined at the end; exp2
# runs: anywhere
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    piece = tl.arange(0, BLOCK)
    LOG2E: tl.constexpr = 1.4426950408889634
    highest = tl.full((BLOCK,), -1e38, dtype=tl.float32)
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        inside = start + piece < columns
        x = tl.load(x_ptr + row * x_stride + start + piece, mask=inside, other=-float("inf"))
        higher = tl.maximum(highest, x)
        sums = sums * tl.exp2((highest - higher) * LOG2E) + tl.exp2((x - higher) * LOG2E)
        highest = higher
    row_max = tl.max(highest, axis=0)
    scale = 1.0 / tl.sum(sums * tl.exp2((highest - row_max) * LOG2E), axis=0)
    last = (columns - 1) // BLOCK * BLOCK
    for back in range(0, columns, BLOCK):  # the pieces that were read last may still be in the cache
        start = last - back
        inside = start + piece < columns
        x = tl.load(x_ptr + row * x_stride + start + piece, mask=inside, other=0.0)
        tl.store(out_ptr + row * out_stride + start + piece, scale * tl.exp2((x - row_max) * LOG2E), mask=inside)


def softmax_long(x, out):
    rows, columns = x.shape
    row_kernel[(rows,)](x, out, x.stride(0), out.stride(0), columns, BLOCK=4096, num_warps=8)
