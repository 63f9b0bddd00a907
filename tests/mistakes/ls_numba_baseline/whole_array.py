# mistake: operations on whole arrays in a kernel, as in NumPy
# says: An operation on a whole array would make a new array in the kernel: Numba cannot do that on a GPU.
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
def power(t, y, freqs, out):
    i = cuda.grid(1)
    if i < freqs.size:
        w = freqs[i]
        c = np.cos(w * t)
        s = np.sin(w * t)
        out[i] = finish(w, (y * c).sum(), (y * s).sum(), (c * c).sum(), (s * s).sum(), (c * s).sum())


def ls_numba_baseline(t, y, freqs, out):
    power[(freqs.size + 127) // 128, 128](t, y, freqs, out)
