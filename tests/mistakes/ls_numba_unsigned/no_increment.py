# mistake: the loop over the samples does not increment its index
# says: The loop `while j < n` never ends: nothing in it changes `j` or `n`.
# runs: anywhere
import math

from numba import cuda, float32, from_dtype, int32, uint32, void

kernels = {}


def build(real):
    vector = real[::1]
    cap = 32 if real == float32 else 64

    @cuda.jit(void(vector, vector, vector, vector), fastmath=True, max_registers=cap)
    def power(t, y, freqs, out):
        for i in range(int32(cuda.grid(1)), int32(freqs.size), int32(cuda.gridsize(1))):
            w = freqs[i]
            xc = xs = cc = ss = cs = real(0.0)
            j, n = uint32(0), uint32(t.size)
            while j < n:
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


def ls_numba_unsigned(t, y, freqs, out):
    if out.dtype not in kernels:
        kernels[out.dtype] = build(from_dtype(out.dtype))
    blocks = 20 * cuda.get_current_device().MULTIPROCESSOR_COUNT
    kernels[out.dtype][blocks, 128](t, y, freqs, out)
