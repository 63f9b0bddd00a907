# mistake: the exponentials of a piece are not added up
# says: Every element is 1: each exponential was divided by itself
# runs: anywhere

import triton
import triton.language as tl


@triton.jit
def softmax_long_kernel(x_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    piece = tl.arange(0, BLOCK)
    row_max = -3.4e38
    denominator = 0.0
    for start in range(0, columns, BLOCK):
        column = start + piece
        x = tl.load(x_ptr + row * x_stride + column, mask=column < columns, other=-float("inf"))
        new_max = tl.maximum(row_max, tl.max(x, axis=0))
        denominator = denominator * tl.exp(row_max - new_max) + tl.exp(x - new_max)
        row_max = new_max
    for start in range(0, columns, BLOCK):
        column = start + piece
        x = tl.load(x_ptr + row * x_stride + column, mask=column < columns, other=0.0)
        tl.store(out_ptr + row * out_stride + column, tl.exp(x - row_max) / denominator, mask=column < columns)


def softmax_long(x, out):
    rows, columns = x.shape
    block = min(triton.next_power_of_2(columns), 32_768)
    strides = x.stride(0), out.stride(0)
    softmax_long_kernel[(rows,)](x, out, *strides, columns, BLOCK=block, num_warps=32 if block > 2048 else 4)
