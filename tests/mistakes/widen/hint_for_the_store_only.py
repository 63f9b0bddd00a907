# mistake: hints for the rows of `out` and the mask, but not for the rows of `x`
# says: The compiler does not know how the rows of the loaded matrix are aligned.
# runs: anywhere

import triton
import triton.language as tl


@triton.jit
def wide_kernel(x_ptr, gain_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = tl.max_constancy(column < columns, 4)
    gain = tl.load(gain_ptr + row)
    x = tl.load(x_ptr + row * x_stride + column, mask=mask)
    tl.store(out_ptr + tl.multiple_of(row * out_stride, 4) + column, x * gain, mask=mask)


def widen(x, gain, out):
    rows, columns = x.shape
    grid = rows, triton.cdiv(columns, 1024)
    wide_kernel[grid](x, gain, out, x.stride(0), out.stride(0), columns, BLOCK=1024)
