# right: Numba, a thread per product, with atomics into an array that NumPy filled with zeros
# runs: anywhere
import math

import numpy as np
from numba import cuda


@cuda.jit(device=True)
def finish(w, xc, xs, cc, ss, cs):
    tau = math.atan2(2.0 * cs, cc - ss) / (2.0 * w)
    c = math.cos(w * tau)
    s = math.sin(w * tau)
    along = (c * xc + s * xs) ** 2 / (c * c * cc + 2.0 * c * s * cs + s * s * ss)
    across = (c * xs - s * xc) ** 2 / (c * c * ss - 2.0 * c * s * cs + s * s * cc)
    return 0.5 * (along + across)


@cuda.jit
def add(t, y, freqs, sums):
    i, j = cuda.grid(2)
    if i < freqs.size and j < t.size:
        w = freqs[i]
        c = math.cos(w * t[j])
        s = math.sin(w * t[j])
        cuda.atomic.add(sums, (0, i), y[j] * c)
        cuda.atomic.add(sums, (1, i), y[j] * s)
        cuda.atomic.add(sums, (2, i), c * c)
        cuda.atomic.add(sums, (3, i), s * s)
        cuda.atomic.add(sums, (4, i), c * s)


@cuda.jit
def end(freqs, sums, out):
    i = cuda.grid(1)
    if i < freqs.size:
        out[i] = finish(freqs[i], sums[0, i], sums[1, i], sums[2, i], sums[3, i], sums[4, i])


def ls_open(t, y, freqs, out):
    sums = cuda.to_device(np.zeros((5, freqs.size), dtype=np.float32))
    add[((freqs.size + 31) // 32, (t.size + 3) // 4), (32, 4)](t, y, freqs, sums)
    end[(freqs.size + 127) // 128, 128](freqs, sums, out)
