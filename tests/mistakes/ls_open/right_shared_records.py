# right: samples as records in shared memory
# runs: anywhere

import math

import numpy as np
from numba import cuda, float32, from_dtype, void

sample = np.dtype([("t", np.float32), ("y", np.float32)], align=True)
sample_nb = from_dtype(sample)
CHUNK = 256


@cuda.jit(void(float32[::1], float32[::1], float32[::1], float32[::1]), fastmath=True)
def kernel(t, y, freqs, out):
    shared = cuda.shared.array(CHUNK, sample_nb)
    tid = cuda.threadIdx.x
    for base in range(cuda.blockIdx.x * CHUNK, freqs.size, cuda.gridDim.x * CHUNK):
        i = base + tid
        w = float32(0)
        if i < freqs.size:
            w = freqs[i]
        xc = float32(0)
        xs = float32(0)
        cc = float32(0)
        ss = float32(0)
        cs = float32(0)
        for first in range(0, t.size, CHUNK):
            cuda.syncthreads()
            if first + tid < t.size:
                shared[tid].t = t[first + tid]
                shared[tid]["y"] = y[first + tid]
            cuda.syncthreads()
            for k in range(min(CHUNK, t.size - first)):
                a = w * shared[k].t
                c, s = math.cos(a), math.sin(a)
                xc += shared[k].y * c
                xs += shared[k].y * s
                cc += c * c
                ss += s * s
                cs += c * s
        if i < freqs.size:
            wt = float32(0.5) * math.atan2(cs + cs, cc - ss)
            c, s = math.cos(wt), math.sin(wt)
            d = c * s * cs
            d += d
            u, v = c * xc + s * xs, c * xs - s * xc
            out[i] = float32(0.5) * (u * u / (c * c * cc + d + s * s * ss) + v * v / (c * c * ss - d + s * s * cc))


def ls_open(t, y, freqs, out):
    kernel[(freqs.size + CHUNK - 1) // CHUNK, CHUNK](t, y, freqs, out)
