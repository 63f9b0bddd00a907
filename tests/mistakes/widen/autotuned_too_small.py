# mistake: autotuned, but every configuration has too few elements per thread
# says: the block is too small (threads: 128, elements per thread:
# runs: anywhere

import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 256}), triton.Config({"BLOCK": 128})], key=["columns"])
@triton.jit
def wide_kernel(x_ptr, gain_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = column < columns // 4 * 4
    gain = tl.load(gain_ptr + row)
    x = tl.load(x_ptr + row * (x_stride // 4 * 4) + column, mask=mask)
    tl.store(out_ptr + row * (out_stride // 4 * 4) + column, x * gain, mask=mask)


def widen(x, gain, out):
    rows, columns = x.shape
    grid = lambda meta: (rows, triton.cdiv(columns, meta["BLOCK"]))  # noqa: E731
    wide_kernel[grid](x, gain, out, x.stride(0), out.stride(0), columns)
