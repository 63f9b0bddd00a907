# mistake: a shared array as long as the samples, which Numba cannot know when it compiles
# says: The shape of a shared array is computed
# runs: anywhere

import math

from numba import cuda, float32


@cuda.jit
def kernel(t, y, freqs, out):
    ts = cuda.shared.array(t.size, float32)
    for j in range(cuda.threadIdx.x, t.size, cuda.blockDim.x):
        ts[j] = t[j]
    cuda.syncthreads()
    for i in range(cuda.grid(1), freqs.size, cuda.gridsize(1)):
        xc = xs = cc = ss = cs = 0.0
        for j in range(t.size):
            c = math.cos(freqs[i] * ts[j])
            s = math.sin(freqs[i] * ts[j])
            xc += y[j] * c
            xs += y[j] * s
            cc += c * c
            ss += s * s
            cs += c * s
        tau = 0.5 * math.atan2(2 * cs, cc - ss)
        c = math.cos(tau)
        s = math.sin(tau)
        out[i] = 0.5 * (
            (c * xc + s * xs) ** 2 / (c * c * cc + 2 * c * s * cs + s * s * ss)
            + (c * xs - s * xc) ** 2 / (c * c * ss - 2 * c * s * cs + s * s * cc)
        )


def ls_open(t, y, freqs, out):
    kernel[64, 128](t, y, freqs, out)
