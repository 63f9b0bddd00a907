# slow: a loop on the host launches the kernel for each 16 frequencies
# cause: many launches
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
    part = (freqs.size + 63) // 64
    for first in range(0, freqs.size, part):
        power_kernel[(part + 127) // 128, 128](t, y, freqs[first : first + part], out[first : first + part])
