# honest: tl.reduce over pairs of maximum and sum, with a combine function of its own
# exercise: softmax
# runs: gpu
# gates: may miss
import triton
import triton.language as tl


@triton.jit
def combine(a_max, a_sum, b_max, b_sum):
    both = tl.maximum(a_max, b_max)
    a = tl.where(a_sum == 0.0, 0.0, a_sum * tl.exp(a_max - both))
    b = tl.where(b_sum == 0.0, 0.0, b_sum * tl.exp(b_max - both))
    return both, a + b


@triton.jit
def kernel(x_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    x = tl.load(x_ptr + row * x_stride + at, mask=mask, other=-float("inf"))
    counts = tl.where(x == -float("inf"), 0.0, 1.0)
    finite = tl.where(x == -float("inf"), -3.0e38, x)
    row_max, row_sum = tl.reduce((finite, counts), 0, combine)
    tl.store(out_ptr + row * out_stride + at, tl.exp(x - row_max) / row_sum, mask=mask)


def softmax(x, out):
    rows, columns = x.shape
    block = triton.next_power_of_2(columns)
    warps = min(max(block // 512, 1), 32)
    kernel[(rows,)](x, out, x.stride(0), out.stride(0), columns, BLOCK=block, num_warps=warps)
