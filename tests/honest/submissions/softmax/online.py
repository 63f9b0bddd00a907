# honest: online softmax: maximum and sum in one loop over blocks, a second loop writes
# exercise: softmax
# runs: anywhere
# gates: may miss
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    x_ptr += tl.program_id(0) * x_stride
    out_ptr += tl.program_id(0) * out_stride
    running_max = -float("inf")
    running_sum = 0.0
    for begin in range(0, columns, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < columns, other=-float("inf"))
        new_max = tl.maximum(running_max, tl.max(x, axis=0))
        # a row may begin with minus infinity; inf - inf would be NaN
        safe_max = tl.where(new_max == -float("inf"), 0.0, new_max)
        running_sum = running_sum * tl.exp(running_max - safe_max) + tl.sum(tl.exp(x - safe_max), axis=0)
        running_max = new_max
    for begin in range(0, columns, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < columns, other=-float("inf"))
        tl.store(out_ptr + at, tl.exp(x - running_max) / running_sum, mask=at < columns)


def softmax(x, out):
    rows, columns = x.shape
    kernel[(rows,)](x, out, x.stride(0), out.stride(0), columns, BLOCK=1024)
