# right: whole blocks without a mask, and a narrow kernel for the rest of each row
# runs: anywhere

import triton
import triton.language as tl


@triton.jit
def whole_kernel(x_ptr, gain_ptr, out_ptr, x_stride, out_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.multiple_of(row * x_stride, 4) + column)
    tl.store(out_ptr + tl.multiple_of(row * out_stride, 4) + column, x * tl.load(gain_ptr + row))


@triton.jit
def rest_kernel(x_ptr, gain_ptr, out_ptr, x_stride, out_stride, first, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = first + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_stride + column, mask=column < columns)
    tl.store(out_ptr + row * out_stride + column, x * tl.load(gain_ptr + row), mask=column < columns)


def widen(x, gain, out):
    rows, columns = x.shape
    whole, rest = divmod(columns, 512)
    strides = x.stride(0), out.stride(0)
    if whole:
        whole_kernel[rows, whole](x, gain, out, *strides, BLOCK=512)
    if rest:
        rest_kernel[(rows,)](x, gain, out, *strides, 512 * whole, columns, BLOCK=512)
