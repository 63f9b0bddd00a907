# honest: three passes over the row in one kernel: maximum, sum, quotient
# exercise: softmax
# runs: anywhere
# gates: may miss
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_row = x_ptr + row * x_stride
    out_row = out_ptr + row * out_stride

    largest = tl.full((BLOCK,), -float("inf"), tl.float32)
    for begin in range(0, columns, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        largest = tl.maximum(largest, tl.load(x_row + at, mask=at < columns, other=-float("inf")))
    row_max = tl.max(largest, axis=0)

    sums = tl.zeros((BLOCK,), tl.float32)
    for begin in range(0, columns, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        sums += tl.exp(tl.load(x_row + at, mask=at < columns, other=-float("inf")) - row_max)
    row_sum = tl.sum(sums, axis=0)

    for begin in range(0, columns, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        value = tl.exp(tl.load(x_row + at, mask=at < columns) - row_max)
        tl.store(out_row + at, value / row_sum, mask=at < columns)


def softmax(x, out):
    kernel[x.shape[:1]](x, out, x.stride(0), out.stride(0), x.size(1), BLOCK=2048, num_warps=8)
