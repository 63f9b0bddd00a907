# right: a block reads the samples into shared memory, a piece at a time
# runs: anywhere
import math

from numba import cuda, float64

PIECE = 64


@cuda.jit
def kernel(t, y, freqs, out):
    times = cuda.shared.array(PIECE, float64)
    values = cuda.shared.array(PIECE, float64)
    me, i = cuda.threadIdx.x, cuda.grid(1)
    w = freqs[min(i, freqs.size - 1)]
    xc = xs = cc = ss = cs = 0.0
    for start in range(0, t.size, PIECE):
        if start + me < t.size:
            times[me], values[me] = t[start + me], y[start + me]
        cuda.syncthreads()
        for j in range(min(PIECE, t.size - start)):
            c, s = math.cos(w * times[j]), math.sin(w * times[j])
            xc += values[j] * c
            xs += values[j] * s
            cc += c * c
            ss += s * s
            cs += c * s
        cuda.syncthreads()
    if i < freqs.size:
        tau = math.atan2(2.0 * cs, cc - ss) / (2.0 * w)
        c, s = math.cos(w * tau), math.sin(w * tau)
        along = (c * xc + s * xs) ** 2 / (c * c * cc + 2.0 * c * s * cs + s * s * ss)
        across = (c * xs - s * xc) ** 2 / (c * c * ss - 2.0 * c * s * cs + s * s * cc)
        out[i] = 0.5 * (along + across)


def ls_numba_baseline(t, y, freqs, out):
    kernel[(freqs.size + PIECE - 1) // PIECE, PIECE](t, y, freqs, out)
