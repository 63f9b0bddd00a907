# mistake: fast math is passed to the signature
# says: Options belong to `cuda.jit`, after the signature
# runs: anywhere
import math

from numba import cuda, from_dtype, int32, void

kernels = {}


def build(real):
    vector = real[::1]

    @cuda.jit(void(vector, vector, vector, vector, fastmath=True))
    def power(t, y, freqs, out):
        for i in range(int32(cuda.grid(1)), int32(freqs.size), int32(cuda.gridsize(1))):
            w = freqs[i]
            xc = xs = cc = ss = cs = real(0.0)
            for j in range(int32(t.size)):
                c = math.cos(w * t[j])
                s = math.sin(w * t[j])
                xc += y[j] * c
                xs += y[j] * s
                cc += c * c
                ss += s * s
                cs += c * s
            half = real(0.5) * math.atan2(real(2.0) * cs, cc - ss)
            c = math.cos(half)
            s = math.sin(half)
            both = real(2.0) * c * s * cs
            p = c * xc + s * xs
            q = c * xs - s * xc
            out[i] = real(0.5) * (p * p / (c * c * cc + both + s * s * ss) + q * q / (c * c * ss - both + s * s * cc))

    return power


def ls_numba_fastmath(t, y, freqs, out):
    if out.dtype not in kernels:
        kernels[out.dtype] = build(from_dtype(out.dtype))
    blocks = 20 * cuda.get_current_device().MULTIPROCESSOR_COUNT
    kernels[out.dtype][blocks, 128](t, y, freqs, out)
