# slow: the block always has 32,768 elements, so nearly all are masked: 97% for 781 columns, 75% for 8,192
# cause: idle elements
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
    rows, columns = x.shape
    block_size = max(32_768, triton.next_power_of_2(columns))  # one compiled kernel for every row
    strides = x.stride(0), out.stride(0)
    softmax_kernel[(rows,)](x, out, *strides, columns, BLOCK_SIZE=block_size, num_warps=16)
