# right: Numba, sums by a butterfly of shuffles, with cuda.warpsize and a mask of -1
# runs: anywhere
import math

import numpy as np
from numba import cuda


@cuda.jit(device=True)
def finish(w, xc, xs, cc, ss, cs):
    tau = math.atan2(2.0 * cs, cc - ss) / (2.0 * w)
    c = math.cos(w * tau)
    s = math.sin(w * tau)
    along = (c * xc + s * xs) ** 2 / (c * c * cc + 2.0 * c * s * cs + s * s * ss)
    across = (c * xs - s * xc) ** 2 / (c * c * ss - 2.0 * c * s * cs + s * s * cc)
    return 0.5 * (along + across)


@cuda.jit(device=True)
def warp_sum(v):
    m = 16
    while m > 0:
        v += cuda.shfl_xor_sync(-1, v, m)
        m >>= 1
    return v


@cuda.jit
def power(t, y, freqs, out):
    lane = cuda.laneid
    warp = cuda.grid(1) // cuda.warpsize
    if warp >= freqs.size:
        return
    w = freqs[warp]
    xc = xs = cc = ss = cs = np.float32(0)
    for j in range(lane, t.size, cuda.warpsize):
        c = math.cos(w * t[j])
        s = math.sin(w * t[j])
        xc += y[j] * c
        xs += y[j] * s
        cc += c * c
        ss += s * s
        cs += c * s
    xc = warp_sum(xc)
    xs = warp_sum(xs)
    cc = warp_sum(cc)
    ss = warp_sum(ss)
    cs = warp_sum(cs)
    if lane == 0:
        out[warp] = finish(w, xc, xs, cc, ss, cs)


def ls_open(t, y, freqs, out):
    power[(freqs.size * 32 + 127) // 128, 128](t, y, freqs, out)
