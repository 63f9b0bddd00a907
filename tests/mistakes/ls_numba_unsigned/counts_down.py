# mistake: counts down, and every step is cut to 32 bits again
# says: the loop over the samples has 19 PTX instructions per sample
# runs: simulator
import math

from numba import cuda, float32, from_dtype, int32, uint32, void

kernels = {}


def build(real):
    cap = 32 if real is float32 else 64

    @cuda.jit(void(real[::1], real[::1], real[::1], real[::1]), fastmath=True, max_registers=cap)
    def power(t, y, freqs, out):
        two = real(2.0)
        for i in range(int32(cuda.grid(1)), int32(freqs.size), int32(cuda.gridsize(1))):
            w = freqs[i]
            xc = xs = cc = ss = cs = real(0.0)
            j = uint32(t.size)
            while j > uint32(0):
                j = uint32(j - uint32(1))
                c, s = math.cos(w * t[j]), math.sin(w * t[j])
                xc += y[j] * c
                xs += y[j] * s
                cc += c * c
                ss += s * s
                cs += c * s
            tau = math.atan2(two * cs, cc - ss) / (two * w)
            c, s = math.cos(w * tau), math.sin(w * tau)
            along = (c * xc + s * xs) ** 2 / (c * c * cc + two * c * s * cs + s * s * ss)
            across = (c * xs - s * xc) ** 2 / (c * c * ss - two * c * s * cs + s * s * cc)
            out[i] = real(0.5) * (along + across)

    return power


def ls_numba_unsigned(t, y, freqs, out):
    if out.dtype not in kernels:
        kernels[out.dtype] = build(from_dtype(out.dtype))
    blocks = 20 * cuda.get_current_device().MULTIPROCESSOR_COUNT
    kernels[out.dtype][blocks, 128](t, y, freqs, out)
