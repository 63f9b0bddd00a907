# slow: a block has 8 threads, so three quarters of every warp do nothing
# cause: partial warps
import math

from numba import cuda, from_dtype, int32, void

kernels = {}


def build(real):
    @cuda.jit(void(real[::1], real[::1], real[::1], real[::1]))
    def power(t, y, freqs, out):
        two = real(2.0)
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
            tau = math.atan2(two * cs, cc - ss) / (two * w)
            c, s = math.cos(w * tau), math.sin(w * tau)
            along = (c * xc + s * xs) ** 2 / (c * c * cc + two * c * s * cs + s * s * ss)
            across = (c * xs - s * xc) ** 2 / (c * c * ss - two * c * s * cs + s * s * cc)
            out[i] = real(0.5) * (along + across)

    return power


def ls_numba_typed(t, y, freqs, out):
    if out.dtype not in kernels:
        kernels[out.dtype] = build(from_dtype(out.dtype))
    blocks = (freqs.size + 7) // 8  # a thread per frequency
    kernels[out.dtype][blocks, 8](t, y, freqs, out)
