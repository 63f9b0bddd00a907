# right: a device function takes the arrays and returns all sums, and the loop over the frequencies is a `while` loop
# runs: anywhere
import math

from numba import cuda


@cuda.jit(device=True)
def sums(w, t, y):
    a = b = c = d = e = 0.0
    for k in range(len(t)):
        p = w * t[k]
        co = math.cos(p)
        si = math.sin(p)
        a += y[k] * co
        b += y[k] * si
        c += co**2
        d += si**2
        e += co * si
    return a, b, c, d, e


@cuda.jit(device=True)
def finish(a, b, c, d, e):
    h = math.atan2(e + e, c - d) / 2
    co, si = math.cos(h), math.sin(h)
    return (
        (co * a + si * b) ** 2 / (co**2 * c + 2 * co * si * e + si**2 * d)
        + (co * b - si * a) ** 2 / (co**2 * d - 2 * co * si * e + si**2 * c)
    ) / 2


@cuda.jit
def kernel(t, y, freqs, out):
    i = cuda.grid(1)
    stride = cuda.blockDim.x * cuda.gridDim.x
    while i < out.shape[0]:
        a, b, c, d, e = sums(freqs[i], t, y)
        out[i] = finish(a, b, c, d, e)
        i += stride


def ls_numba_baseline(t, y, freqs, out):
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    kernel[(20 * sms,), (128,)](t, y, freqs, out)
    cuda.synchronize()
