# mistake: math.exp in a kernel
# says: `tl.exp`, not `math.exp`
# runs: simulator
import math

import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, x_stride, out_stride, columns, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK_SIZE)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf"))
    numerator = math.exp(x - tl.max(x, axis=0))
    denominator = tl.sum(numerator, axis=0)
    tl.store(out_ptr + row * out_stride + column, numerator / denominator, mask=mask)


def softmax(x, out):
    rows, columns = x.shape
    block_size = triton.next_power_of_2(columns)
    num_warps = min(max(block_size // 512, 1), 32)  # 16 elements per thread, more in the longest rows
    strides = x.stride(0), out.stride(0)
    softmax_kernel[(rows,)](x, out, *strides, columns, BLOCK_SIZE=block_size, num_warps=num_warps)
