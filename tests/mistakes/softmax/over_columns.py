# mistake: the softmax over columns
# says: This is the softmax over columns, not rows
# runs: gpu
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, x_stride, out_stride, rows, BLOCK_SIZE: tl.constexpr):
    column = tl.program_id(0)
    row = tl.arange(0, BLOCK_SIZE)
    mask = row < rows
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x, axis=0))
    denominator = tl.sum(numerator, axis=0)
    tl.store(out_ptr + row * out_stride + column, numerator / denominator, mask=mask)


def softmax(x, out):
    rows, columns = x.shape
    block_size = triton.next_power_of_2(rows)
    softmax_kernel[(columns,)](x, out, x.stride(0), out.stride(0), rows, BLOCK_SIZE=block_size)
