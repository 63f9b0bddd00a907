# slow: copies the matrix before the kernel reads it
# cause: extra operations
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x_row, out_row = x_ptr + row * x_stride, out_ptr + row * out_stride
    largest = tl.full((BLOCK,), -float("inf"), tl.float32)
    for start in range(0, columns, BLOCK):
        x = tl.load(x_row + start + i, mask=start + i < columns, other=-float("inf"))
        largest = tl.maximum(largest, x)
    row_max = tl.max(largest, axis=0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        x = tl.load(x_row + start + i, mask=start + i < columns, other=-float("inf"))
        total += tl.exp(x - row_max)
    row_sum = tl.sum(total, axis=0)
    for start in range(0, columns, BLOCK):
        x = tl.load(x_row + start + i, mask=start + i < columns, other=-float("inf"))
        tl.store(out_row + start + i, tl.exp(x - row_max) / row_sum, mask=start + i < columns)


def softmax_long(x, out):
    rows, columns = x.shape
    x = x.clone()
    softmax_kernel[(rows,)](x, out, x.stride(0), out.stride(0), columns, BLOCK=4096, num_warps=8)
