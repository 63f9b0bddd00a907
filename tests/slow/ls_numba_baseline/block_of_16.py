# slow: blocks of 16 threads: half of the lanes never work
# cause: partial warps
import math

from numba import cuda


@cuda.jit
def power_kernel(t, y, freqs, out):
    i = cuda.grid(1)
    if i < freqs.size:
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
    power_kernel[(freqs.size + 15) // 16, 16](t, y, freqs, out)
