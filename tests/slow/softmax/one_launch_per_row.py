# slow: a loop on the host launches the kernel once per row
# cause: many launches
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
    block = triton.next_power_of_2(columns)
    for row in range(rows):
        softmax_kernel[(1,)](x[row:], out[row:], x.stride(0), out.stride(0), columns, BLOCK=block, num_warps=8)
