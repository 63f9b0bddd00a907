# right: Numba, a device function that takes named arguments and has a default
# runs: anywhere

import math

from numba import cuda, float32


@cuda.jit(device=True, fastmath=True)
def power(xc, xs, cc, cs, samples, half=0.5):
    ss = samples - cc
    angle = half * math.atan2(2 * cs, cc - ss)
    c, s = math.cos(angle), math.sin(angle)
    p, q, both = c * xc + s * xs, c * xs - s * xc, 2 * c * s * cs
    return half * (p * p / (c * c * cc + both + s * s * ss) + q * q / (c * c * ss - both + s * s * cc))


@cuda.jit(fastmath=True)
def kernel(t, y, freqs, out):
    i = cuda.grid(1)
    if i >= freqs.size:
        return
    xc = xs = cc = cs = float32(0)
    for j in range(t.size):
        c, s = math.cos(freqs[i] * t[j]), math.sin(freqs[i] * t[j])
        xc += y[j] * c
        xs += y[j] * s
        cc += c * c
        cs += c * s
    out[i] = power(xc, xs, samples=t.size, cs=cs, cc=cc)


def ls_open(t, y, freqs, out):
    kernel[(freqs.size + 127) // 128, 128](t, y, freqs, out)
