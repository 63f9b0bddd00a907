# honest: several short rows in one program, as a two-dimensional block
# exercise: softmax
# runs: anywhere
# gates: passes
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, x_stride, out_stride, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    mask = (row < rows) & (column < columns)
    # rows past the end are loaded as 0: a row of minus infinities would make NaN
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf"))
    x = tl.where(row < rows, x, 0.0)
    numerator = tl.exp(x - tl.max(x, axis=1, keep_dims=True))
    result = numerator / tl.sum(numerator, axis=1, keep_dims=True)
    tl.store(out_ptr + row * out_stride + column, result, mask=mask)


def softmax(x, out):
    rows, columns = x.shape
    block = triton.next_power_of_2(columns)
    rows_at_once = max(1, min(4, 2048 // block))
    warps = min(max(rows_at_once * block // 512, 1), 32)
    kernel[(triton.cdiv(rows, rows_at_once),)](
        x, out, x.stride(0), out.stride(0), rows, columns, ROWS=rows_at_once, BLOCK=block, num_warps=warps
    )
