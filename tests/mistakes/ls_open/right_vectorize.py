# right: Numba, sums by a kernel, and the power by vectorize for CUDA
# runs: anywhere
import math

import numpy as np
from numba import cuda, vectorize


@vectorize(["float32(float32, float32, float32, float32, float32, float32)"], target="cuda")
def finish(w, xc, xs, cc, ss, cs):
    tau = math.atan2(2.0 * cs, cc - ss) / (2.0 * w)
    c = math.cos(w * tau)
    s = math.sin(w * tau)
    along = (c * xc + s * xs) ** 2 / (c * c * cc + 2.0 * c * s * cs + s * s * ss)
    across = (c * xs - s * xc) ** 2 / (c * c * ss - 2.0 * c * s * cs + s * s * cc)
    return 0.5 * (along + across)


@cuda.jit
def sums_kernel(t, y, freqs, sums):
    i = cuda.grid(1)
    if i < freqs.size:
        w = freqs[i]
        xc = 0.0
        xs = 0.0
        cc = 0.0
        ss = 0.0
        cs = 0.0
        for j in range(t.shape[0]):
            c = math.cos(w * t[j])
            s = math.sin(w * t[j])
            xc += y[j] * c
            xs += y[j] * s
            cc += c * c
            ss += s * s
            cs += c * s
        sums[0, i] = xc
        sums[1, i] = xs
        sums[2, i] = cc
        sums[3, i] = ss
        sums[4, i] = cs


def ls_open(t, y, freqs, out):
    sums = cuda.device_array((5, freqs.size), dtype=np.float32)
    sums_kernel[(freqs.size + 127) // 128, 128](t, y, freqs, sums)
    finish(freqs, sums[0], sums[1], sums[2], sums[3], sums[4], out=out)
