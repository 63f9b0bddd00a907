# mistake: the index is that of a grid with two axes
# says: `cuda.grid(2)` returns 2 numbers
# runs: simulator

import math

from numba import cuda


@cuda.jit
def power_kernel(t, y, freqs, out):
    for i in range(cuda.grid(2), freqs.size, cuda.gridsize(1)):
        w = freqs[i]
        xc = xs = cc = ss = cs = 0.0
        for j in range(t.size):
            c, s = math.cos(w * t[j]), math.sin(w * t[j])
            xc += y[j] * c
            xs += y[j] * s
            cc += c * c
            ss += s * s
            cs += c * s
        tau = math.atan2(2.0 * cs, cc - ss) / (2.0 * w)
        c, s = math.cos(w * tau), math.sin(w * tau)
        along = (c * xc + s * xs) ** 2 / (c * c * cc + 2.0 * c * s * cs + s * s * ss)
        across = (c * xs - s * xc) ** 2 / (c * c * ss - 2.0 * c * s * cs + s * s * cc)
        out[i] = 0.5 * (along + across)


def ls_numba_baseline(t, y, freqs, out):
    blocks = 20 * cuda.get_current_device().MULTIPROCESSOR_COUNT
    power_kernel[blocks, 128](t, y, freqs, out)
