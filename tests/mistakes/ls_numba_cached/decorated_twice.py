# mistake: the kernel keeps its decorator, and is decorated again for each type: both then run the first one
# says: The arrays are float64, but a kernel for floats treated them as float32
# runs: anywhere
import math

from numba import cuda, from_dtype, void

kernels = {}


@cuda.jit
def power(t, y, freqs, out):
    for i in range(cuda.grid(1), freqs.size, cuda.gridsize(1)):
        w = freqs[i]
        xc = xs = cc = ss = cs = 0.0
        for j in range(t.size):
            c = math.cos(w * t[j])
            s = math.sin(w * t[j])
            xc += y[j] * c
            xs += y[j] * s
            cc += c * c
            ss += s * s
            cs += c * s
        tau = math.atan2(2 * cs, cc - ss) / (2 * w)
        c = math.cos(w * tau)
        s = math.sin(w * tau)
        out[i] = 0.5 * (
            (c * xc + s * xs) ** 2 / (c * c * cc + 2 * c * s * cs + s * s * ss)
            + (c * xs - s * xc) ** 2 / (c * c * ss - 2 * c * s * cs + s * s * cc)
        )


def ls_numba_cached(t, y, freqs, out):
    if out.dtype not in kernels:
        real = from_dtype(out.dtype)[::1]
        kernels[out.dtype] = cuda.jit(void(real, real, real, real))(power)
    blocks = 20 * cuda.get_current_device().MULTIPROCESSOR_COUNT
    kernels[out.dtype][blocks, 128](t, y, freqs, out)
