# mistake: the loads are contiguous, but the stores still strided
# says: Elements were loaded in one order and stored in another: use the same columns for both.
# runs: anywhere

import triton
import triton.language as tl


@triton.jit
def wide_kernel(x_ptr, gain_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    column = tl.program_id(1) * BLOCK + lane
    spread = tl.program_id(1) + lane * tl.num_programs(1)
    mask = tl.max_constancy(column < columns, 4)
    gain = tl.load(gain_ptr + row)
    x = tl.load(x_ptr + tl.multiple_of(row * x_stride, 4) + column, mask=mask)
    tl.store(out_ptr + row * out_stride + spread, x * gain, mask=spread < columns)


def widen(x, gain, out):
    rows, columns = x.shape
    grid = rows, triton.cdiv(columns, 512)
    wide_kernel[grid](x, gain, out, x.stride(0), out.stride(0), columns, BLOCK=512)
