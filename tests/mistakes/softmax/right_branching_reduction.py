# right: a maximum and a sum for each place of a piece, reduced by a function that branches
# runs: anywhere
import triton
import triton.language as tl


@triton.jit
def merge(a_max, a_sum, b_max, b_sum):
    top = a_max if a_max > b_max else b_max
    return top, a_sum * tl.exp(a_max - top) + b_sum * tl.exp(b_max - top)


@triton.jit
def kernel(x_ptr, out_ptr, sx, so, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_row, out_row = x_ptr + row.to(tl.int64) * sx, out_ptr + row.to(tl.int64) * so
    column = tl.arange(0, BLOCK)
    top = tl.full((BLOCK,), -3.0e38, tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    left = columns
    while left > 0:
        x = tl.load(x_row + columns - left + column, mask=column < left, other=float("-inf"))
        new = max(top, x)
        total = tl.fma(total, tl.exp(top - new), tl.exp(x - new))
        top = new
        left -= BLOCK
    m, s = tl.reduce((top, total), 0, merge)
    for start in tl.range(0, columns, BLOCK, num_stages=2):
        inside = start + column < columns
        x = tl.load(x_row + start + column, inside)
        tl.store(out_row + start + column, tl.exp(x - m) * (1.0 / s), inside)


def softmax(x, out):
    kernel[(x.shape[0],)](x, out, x.stride(0), out.stride(0), x.shape[1], BLOCK=1024)
