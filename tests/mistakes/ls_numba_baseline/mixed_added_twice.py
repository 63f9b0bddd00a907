# mistake: the product of sine and cosine is added in both denominators
# says: The second denominator has a wrong sign
# runs: anywhere
import math

from numba import cuda


@cuda.jit
def power_kernel(t, y, freqs, out):
    for i in range(cuda.grid(1), freqs.size, cuda.gridsize(1)):
        w = freqs[i]
        xc = 0.0
        xs = 0.0
        C = 0.0
        S = 0.0
        D = 0.0
        for j in range(t.size):
            c = math.cos(w * t[j])
            s = math.sin(w * t[j])
            xc += y[j] * c
            xs += y[j] * s
            C += c * c
            S += s * s
            D += c * s
        tau = math.atan2(2 * D, C - S) / (2 * w)
        c = math.cos(w * tau)
        s = math.sin(w * tau)
        first = (c * xc + s * xs) ** 2 / (c * c * C + 2 * c * s * D + s * s * S)
        second = (c * xs - s * xc) ** 2 / (c * c * S + 2 * c * s * D + s * s * C)
        out[i] = 0.5 * (first + second)


def ls_numba_baseline(t, y, freqs, out):
    blocks = 20 * cuda.get_current_device().MULTIPROCESSOR_COUNT
    power_kernel[blocks, 128](t, y, freqs, out)
