# slow: the block is as long as the longest row of all, whatever the row
# cause: idle elements
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * out_stride + column, e / tl.sum(e, axis=0), mask=mask)


def softmax(x, out):
    rows, columns = x.shape
    softmax_kernel[(rows,)](x, out, x.stride(0), out.stride(0), columns, BLOCK=32768, num_warps=16)
