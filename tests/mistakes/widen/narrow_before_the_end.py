# mistake: only the last columns have wide loads; the launch for all others comes first
# says: the block is too small (threads: 128, elements per thread: 1)
# runs: anywhere
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, gain_ptr, out_ptr, x_stride, out_stride, first, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = first + tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = tl.max_constancy(column < columns, 4)
    x = tl.load(x_ptr + tl.multiple_of(row * x_stride, 4) + column, mask=mask)
    tl.store(out_ptr + tl.multiple_of(row * out_stride, 4) + column, x * tl.load(gain_ptr + row), mask=mask)


def widen(x, gain, out):
    rows, columns = x.shape
    most = columns // 128 * 128
    arguments = x, gain, out, x.stride(0), out.stride(0)
    if most:
        scale_kernel[(rows, most // 128)](*arguments, 0, most, BLOCK=128)
    if most < columns:
        scale_kernel[(rows, 1)](*arguments, most, columns, BLOCK=128, num_warps=1)
