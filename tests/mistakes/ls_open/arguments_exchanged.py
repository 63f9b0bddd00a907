# mistake: the launch of a Numba kernel exchanges freqs and out
# says: This line writes to an input
# runs: simulator

import math

from numba import cuda, float32


@cuda.jit
def k(t, y, freqs, out):
    i = cuda.grid(1) // 32
    lane = cuda.laneid
    if i >= freqs.size:
        return
    w = freqs[i]
    a = b = cc = d = float32(0)
    for j in range(lane, t.size, 32):
        c, s = math.cos(w * t[j]), math.sin(w * t[j])
        a, b, cc, d = a + y[j] * c, b + y[j] * s, cc + c * c, d + c * s
    for m in (16, 8, 4, 2, 1):
        a += cuda.shfl_xor_sync(-1, a, m)
        b += cuda.shfl_xor_sync(-1, b, m)
        cc += cuda.shfl_xor_sync(-1, cc, m)
        d += cuda.shfl_xor_sync(-1, d, m)
    cuda.syncwarp()
    if lane == 0:
        ss = t.size - cc
        p = math.atan2(2 * d, cc - ss) / 2
        c, s = math.cos(p), math.sin(p)
        both = 2 * c * s * d
        along = (c * a + s * b) ** 2 / (c * c * cc + both + s * s * ss)
        across = (c * b - s * a) ** 2 / (c * c * ss - both + s * s * cc)
        out[i] = 0.5 * (along + across)


def ls_open(t, y, freqs, out):
    k[(freqs.size + 7) // 8, 256](t, y, out, freqs)
