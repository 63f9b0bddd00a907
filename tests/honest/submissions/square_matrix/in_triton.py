# honest: Triton where CUDA C++ is taught, tiles of two dimensions, program ids in groups
# exercise: square_matrix
# runs: anywhere
# gates: passes
import triton
import triton.language as tl


@triton.jit
def square_kernel(x_ptr, out_ptr, height, width, stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    at = rows[:, None] * stride + columns[None, :]
    mask = (rows < height)[:, None] & (columns < width)[None, :]
    x = tl.load(x_ptr + at, mask=mask)
    tl.store(out_ptr + at, x * x, mask=mask)


def square_matrix(x, out):
    height, width = x.shape
    grid = (triton.cdiv(width, 256), triton.cdiv(height, 8))
    square_kernel[grid](x, out, height, width, x.stride(0), ROWS=8, COLUMNS=256, num_warps=4)
