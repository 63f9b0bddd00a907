# mistake: the numbers of rows and columns are exchanged where the shape is unpacked
# says: unpacks `x.shape` as `columns, rows`
# runs: anywhere

import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, x_stride, out_stride, columns, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK_SIZE)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf"))  # reads MN in all
    numerator = tl.exp(x - tl.max(x, axis=0))
    denominator = tl.sum(numerator, axis=0)
    tl.store(out_ptr + row * out_stride + column, numerator / denominator, mask=mask)  # writes MN in all


def softmax(x, out):
    columns, rows = x.shape
    block_size = triton.next_power_of_2(columns)
    num_warps = min(max(block_size // 512, 1), 32)
    strides = x.stride(0), out.stride(0)
    softmax_kernel[(rows,)](x, out, *strides, columns, BLOCK_SIZE=block_size, num_warps=num_warps)
