# right: a block of two axes, the second of four columns; a program goes along its row
# runs: anywhere

import triton
import triton.language as tl


@triton.jit
def quads_kernel(x_ptr, gain_ptr, out_ptr, x_stride, out_stride, columns, QUADS: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row * (x_stride // 4 * 4)
    out_ptr += row * (out_stride // 4 * 4)
    gain = tl.load(gain_ptr + row)
    for start in range(0, columns // 4, QUADS):
        quad = start + tl.arange(0, QUADS)
        column = quad[:, None] * 4 + tl.arange(0, 4)[None, :]
        mask = (quad < columns // 4)[:, None]
        tl.store(out_ptr + column, tl.load(x_ptr + column, mask=mask) * gain, mask=mask)


def widen(x, gain, out):
    quads_kernel[(x.shape[0],)](x, gain, out, x.stride(0), out.stride(0), x.shape[1], QUADS=512, num_warps=8)
