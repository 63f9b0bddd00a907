# slow: phases are reduced and sums are kept in float64: conversions and float64 arithmetic for every sample
# cause: double precision
import math

from numba import cuda, float64, from_dtype, int32, void

kernels = {}


def build(real):
    @cuda.jit(void(real[::1], real[::1], real[::1], real[::1]), fastmath=True)
    def power(t, y, freqs, out):
        turn = 2.0 * math.pi
        for i in range(int32(cuda.grid(1)), int32(freqs.size), int32(cuda.gridsize(1))):
            w = float64(freqs[i])
            xc = xs = cc = ss = cs = 0.0
            for j in range(int32(t.size)):
                turns = w * float64(t[j]) / turn
                angle = real((turns - math.floor(turns + 0.5)) * turn)  # fast sines are inexact far from 0
                c, s = math.cos(angle), math.sin(angle)
                xc += y[j] * c
                xs += y[j] * s
                cc += c * c
                ss += s * s
                cs += c * s
            angle = real(0.5 * math.atan2(2.0 * cs, cc - ss))
            c, s = math.cos(angle), math.sin(angle)
            along = (c * xc + s * xs) ** 2 / (c * c * cc + 2.0 * c * s * cs + s * s * ss)
            across = (c * xs - s * xc) ** 2 / (c * c * ss - 2.0 * c * s * cs + s * s * cc)
            out[i] = 0.5 * (along + across)

    return power


def ls_numba_fastmath(t, y, freqs, out):
    if out.dtype not in kernels:
        kernels[out.dtype] = build(from_dtype(out.dtype))
    blocks = 20 * cuda.get_current_device().MULTIPROCESSOR_COUNT
    kernels[out.dtype][blocks, 128](t, y, freqs, out)
