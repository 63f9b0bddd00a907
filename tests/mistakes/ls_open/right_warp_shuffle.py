# right: Numba, sums by shuffles within a warp
# runs: anywhere

import math

from numba import cuda, float32


@cuda.jit(device=True)
def sum_of_warp(value):
    for distance in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, distance)
    return value


@cuda.jit
def power_kernel(t, y, freqs, out):
    k, lane = cuda.grid(1) // 32, cuda.threadIdx.x % 32
    if k >= freqs.size:
        return
    w = freqs[k]
    a = b = cc = d = float32(0)
    for i in range(lane, t.size, 32):
        c, s = math.cos(w * t[i]), math.sin(w * t[i])
        a += y[i] * c
        b += y[i] * s
        cc += c * c
        d += c * s
    a, b, cc, d = sum_of_warp(a), sum_of_warp(b), sum_of_warp(cc), sum_of_warp(d)
    if lane == 0:
        ss = t.size - cc
        tau = math.atan2(2 * d, cc - ss) / 2
        c, s = math.cos(tau), math.sin(tau)
        both = 2 * c * s * d
        out[k] = 0.5 * (
            (c * a + s * b) ** 2 / (c * c * cc + both + s * s * ss)
            + (c * b - s * a) ** 2 / (c * c * ss - both + s * s * cc)
        )


def ls_open(t, y, freqs, out):
    power_kernel[(freqs.size + 3) // 4, 128](t, y, freqs, out)
