# right: the hint is around the row's address, in bytes
# runs: anywhere

import triton
import triton.language as tl


@triton.jit
def wide_kernel(x_ptr, gain_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = tl.max_constancy(column < columns, 4)
    gain = tl.load(gain_ptr + row)
    x = tl.load(tl.multiple_of(x_ptr + row * x_stride, 16) + column, mask=mask)
    tl.store(tl.max_contiguous(out_ptr + row * out_stride + column, 4), x * gain, mask=mask)


def widen(x, gain, out):
    rows, columns = x.shape
    grid = rows, triton.cdiv(columns, 1024)
    wide_kernel[grid](x, gain, out, x.stride(0), out.stride(0), columns, BLOCK=1024)
