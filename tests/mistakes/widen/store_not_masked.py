# mistake: the load is masked and the store is not; the loads are narrow as well
# says: Is the store masked?
# runs: anywhere

import triton
import triton.language as tl


@triton.jit
def wide(x, g, o, xs, os, n, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.program_id(1) * B + tl.arange(0, B)
    xs = tl.multiple_of(xs, 4)
    os = tl.multiple_of(os, 4)
    n = tl.multiple_of(n, 4)
    v = tl.load(x + r * xs + c, mask=c < n, other=0.0) * tl.load(g + r)
    tl.store(o + r * os + c, v)


def widen(x, gain, out):
    wide[(x.shape[0], triton.cdiv(x.shape[1], 1024))](x, gain, out, x.stride(0), out.stride(0), x.shape[1], B=1024)
