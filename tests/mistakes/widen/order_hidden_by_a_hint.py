# mistake: the columns are still strided, but a hint says they are contiguous
# says: A hint is a promise, and this one is false.
# runs: simulator

import triton
import triton.language as tl


@triton.jit
def wide_kernel(x_ptr, gain_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    step = tl.num_programs(1)
    column = tl.max_contiguous(tl.multiple_of(tl.program_id(1) + tl.arange(0, BLOCK) * step, 4), 4)
    mask = tl.max_constancy(column < columns, 4)
    gain = tl.load(gain_ptr + row)
    x = tl.load(x_ptr + tl.multiple_of(row * x_stride, 4) + column, mask=mask)
    tl.store(out_ptr + tl.multiple_of(row * out_stride, 4) + column, x * gain, mask=mask)


def widen(x, gain, out):
    rows, columns = x.shape
    grid = rows, triton.cdiv(columns, 512)
    wide_kernel[grid](x, gain, out, x.stride(0), out.stride(0), columns, BLOCK=512)
