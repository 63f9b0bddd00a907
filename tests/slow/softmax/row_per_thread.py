# slow: each program takes 64 rows and goes along them one column at a time
# cause: wasted sectors
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, x_stride, out_stride, rows, columns, ROWS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = row < rows
    x_rows, out_rows = x_ptr + row * x_stride, out_ptr + row * out_stride
    largest = tl.full((ROWS,), -float("inf"), tl.float32)
    for column in range(columns):
        largest = tl.maximum(largest, tl.load(x_rows + column, mask=inside, other=0.0))
    total = tl.zeros((ROWS,), tl.float32)
    for column in range(columns):
        total += tl.exp(tl.load(x_rows + column, mask=inside, other=0.0) - largest)
    for column in range(columns):
        e = tl.exp(tl.load(x_rows + column, mask=inside, other=0.0) - largest)
        tl.store(out_rows + column, e / total, mask=inside)


def softmax(x, out):
    rows, columns = x.shape
    strides = x.stride(0), out.stride(0)
    softmax_kernel[(triton.cdiv(rows, 64),)](x, out, *strides, rows, columns, ROWS=64, num_warps=2)
