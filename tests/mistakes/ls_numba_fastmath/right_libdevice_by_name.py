# right: fast sines from libdevice, chosen by type
# runs: anywhere
import math

from numba import cuda, float32, from_dtype, int32, void
from numba.cuda.libdevice import fast_sincosf, sincos

kernels = {}


@cuda.jit(device=True)
def in_float32(phase):
    return fast_sincosf(phase)


def build(real):
    both = in_float32 if real is float32 else sincos

    @cuda.jit(void(real[::1], real[::1], real[::1], real[::1]), fastmath=True)
    def power(t, y, freqs, out):
        half, two = real(0.5), real(2)
        for i in range(int32(cuda.grid(1)), int32(freqs.size), int32(cuda.gridsize(1))):
            w = freqs[i]
            xc = xs = cc = ss = cs = real(0)
            for j in range(int32(t.size)):
                s, c = both(w * t[j])
                xc += y[j] * c
                xs += y[j] * s
                cc += c * c
                ss += s * s
                cs += c * s
            tau = half * math.atan2(two * cs, cc - ss)
            c, s = math.cos(tau), math.sin(tau)
            a, b, mixed = c * xc + s * xs, c * xs - s * xc, two * c * s * cs
            out[i] = half * (a * a / (c * c * cc + mixed + s * s * ss) + b * b / (c * c * ss - mixed + s * s * cc))

    return power


def ls_numba_fastmath(t, y, freqs, out):
    if out.dtype not in kernels:
        kernels[out.dtype] = build(from_dtype(out.dtype))
    kernels[out.dtype][20 * cuda.gpus[0].MULTIPROCESSOR_COUNT, 128](t, y, freqs, out)
