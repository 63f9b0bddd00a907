# slow: a program has four columns and goes down all rows, so half of each sector is for another program
# cause: wasted sectors
# blind: missed
import triton
import triton.language as tl


@triton.jit
def down_the_columns(x, gain, out, x_pitch, out_pitch, rows, columns, DOWN: tl.constexpr):
    four = tl.program_id(0) * 4 + tl.arange(0, 4)
    inside = tl.max_constancy(four < columns, 4)[None, :]
    for top in range(0, rows, DOWN):
        r = top + tl.arange(0, DOWN)
        here = inside & (r < rows)[:, None]
        g = tl.load(gain + r, mask=r < rows, other=0.0)
        source = x + tl.multiple_of(r * x_pitch, 4)[:, None] + four[None, :]
        target = out + tl.multiple_of(r * out_pitch, 4)[:, None] + four[None, :]
        tl.store(target, tl.load(source, mask=here) * g[:, None], mask=here)


def widen(x, gain, out):
    rows, columns = x.shape
    down_the_columns[(columns // 4,)](x, gain, out, x.stride(0), out.stride(0), rows, columns, DOWN=256)
