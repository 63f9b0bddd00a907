# right: Numba, a thread for each frequency
# runs: anywhere

import math

from numba import cuda, float32, int32


@cuda.jit(fastmath=True)
def kernel(t, y, freqs, out):
    first, step = cuda.grid(1), cuda.gridsize(1)
    for i in range(first, freqs.size, step):
        w = freqs[i]
        xc = xs = cc = cs = float32(0)
        for j in range(int32(t.size)):
            c, s = math.cos(w * t[j]), math.sin(w * t[j])
            xc += y[j] * c
            xs += y[j] * s
            cc += c * c
            cs += c * s
        ss = float32(t.size) - cc
        angle = float32(0.5) * math.atan2(float32(2) * cs, cc - ss)
        c, s = math.cos(angle), math.sin(angle)
        p, q, both = c * xc + s * xs, c * xs - s * xc, float32(2) * c * s * cs
        below, beside = c * c * cc + both + s * s * ss, c * c * ss - both + s * s * cc
        out[i] = float32(0.5) * (p * p / below + q * q / beside)


def ls_open(t, y, freqs, out):
    kernel[min(2640, (freqs.size + 127) // 128), 128](t, y, freqs, out)
