# mistake: the original kernel is submitted
# says: The compiler does not know that the block's elements are contiguous in memory
# runs: anywhere

import triton
import triton.language as tl


@triton.jit
def wide_kernel(x_ptr, gain_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.program_id(1) + tl.arange(0, BLOCK) * tl.num_programs(1)
    mask = column < columns
    gain = tl.load(gain_ptr + row)
    x = tl.load(x_ptr + row * x_stride + column, mask=mask)
    tl.store(out_ptr + row * out_stride + column, x * gain, mask=mask)


def widen(x, gain, out):
    rows, columns = x.shape
    grid = rows, triton.cdiv(columns, 256)
    wide_kernel[grid](x, gain, out, x.stride(0), out.stride(0), columns, BLOCK=256)
