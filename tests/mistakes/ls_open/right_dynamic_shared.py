# right: Numba, tiles in dynamic shared memory, as slices
# runs: anywhere
import math

from numba import cuda, float32


@cuda.jit(device=True)
def finish(w, xc, xs, cc, ss, cs):
    tau = math.atan2(2.0 * cs, cc - ss) / (2.0 * w)
    c = math.cos(w * tau)
    s = math.sin(w * tau)
    along = (c * xc + s * xs) ** 2 / (c * c * cc + 2.0 * c * s * cs + s * s * ss)
    across = (c * xs - s * xc) ** 2 / (c * c * ss - 2.0 * c * s * cs + s * s * cc)
    return 0.5 * (along + across)


@cuda.jit
def power(t, y, freqs, out):
    tile = cuda.shared.array(0, float32)
    n = cuda.blockDim.x
    times = tile[:n]
    values = tile[n : 2 * n]
    tx = cuda.threadIdx.x
    i = cuda.grid(1)
    w = float32(1)
    if i < freqs.size:
        w = freqs[i]
    xc = xs = cc = ss = cs = float32(0)
    for first in range(0, t.size, n):
        if first + tx < t.size:
            times[tx] = t[first + tx]
            values[tx] = y[first + tx]
        cuda.syncthreads()
        for j in range(min(n, t.size - first)):
            c = math.cos(w * times[j])
            s = math.sin(w * times[j])
            xc += values[j] * c
            xs += values[j] * s
            cc += c * c
            ss += s * s
            cs += c * s
        cuda.syncthreads()
    if i < freqs.size:
        out[i] = finish(w, xc, xs, cc, ss, cs)


def ls_open(t, y, freqs, out):
    power[(freqs.size + 63) // 64, 64, 0, 2 * 64 * 4](t, y, freqs, out)
