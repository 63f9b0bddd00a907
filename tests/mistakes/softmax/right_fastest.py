# right: two short rows per program, and no mask where a row fills its block
# runs: anywhere
import triton
import triton.language as tl


@triton.jit
def rows_kernel(
    x_ptr, out_ptr, x_stride, out_stride, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr, FULL: tl.constexpr
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    mask = row < rows
    if not FULL:
        mask = mask & (column < columns)
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x, axis=1, keep_dims=True))
    denominator = tl.sum(numerator, axis=1, keep_dims=True)
    tl.store(out_ptr + row * out_stride + column, numerator / denominator, mask=mask)


def softmax(x, out):
    rows, columns = x.shape
    block = triton.next_power_of_2(columns)
    full = block == columns
    together = 2 if block <= 256 else 1
    num_warps = min(max(block * together // (512 if full else 256), 1), 32)
    strides = x.stride(0), out.stride(0)
    rows_kernel[(triton.cdiv(rows, together),)](
        x, out, *strides, rows, columns, ROWS=together, BLOCK=block, FULL=full, num_warps=num_warps
    )
