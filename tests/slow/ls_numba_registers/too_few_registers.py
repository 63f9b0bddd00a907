# slow: a cap of 16 registers, so that the sums spill
# cause: spills
import math

from numba import cuda, from_dtype, int32, void

kernels = {}


def build(real):
    @cuda.jit(void(real[::1], real[::1], real[::1], real[::1]), fastmath=True, max_registers=16)
    def power(t, y, freqs, out):
        for i in range(int32(cuda.grid(1)), int32(freqs.size), int32(cuda.gridsize(1))):
            w = freqs[i]
            xc = xs = cc = ss = cs = real(0.0)
            for j in range(int32(t.size)):
                c, s = math.cos(w * t[j]), math.sin(w * t[j])
                xc += y[j] * c
                xs += y[j] * s
                cc += c * c
                ss += s * s
                cs += c * s
            tau = math.atan2(real(2.0) * cs, cc - ss) / (real(2.0) * w)
            c, s = math.cos(w * tau), math.sin(w * tau)
            along = (c * xc + s * xs) ** 2 / (c * c * cc + real(2.0) * c * s * cs + s * s * ss)
            across = (c * xs - s * xc) ** 2 / (c * c * ss - real(2.0) * c * s * cs + s * s * cc)
            out[i] = real(0.5) * (along + across)

    return power


def ls_numba_registers(t, y, freqs, out):
    if out.dtype not in kernels:
        kernels[out.dtype] = build(from_dtype(out.dtype))
    blocks = 20 * cuda.get_current_device().MULTIPROCESSOR_COUNT
    kernels[out.dtype][blocks, 128](t, y, freqs, out)
