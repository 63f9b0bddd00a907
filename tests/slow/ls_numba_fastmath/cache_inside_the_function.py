# slow: the dictionary of kernels is local, so it is empty in each call
# cause: built in each call
# blind: missed
import math

from numba import cuda, float32, float64, int32, void


def build(real):
    vec = real[::1]

    @cuda.jit(void(vec, vec, vec, vec), fastmath=True)
    def lomb(t, y, freqs, out):
        zero, half, two = real(0.0), real(0.5), real(2.0)
        n, count, step = int32(t.size), int32(freqs.size), int32(cuda.gridsize(1))
        for f in range(int32(cuda.grid(1)), count, step):
            w = freqs[f]
            yc = ys = c2 = s2 = sc = zero
            for k in range(n):
                angle = w * t[k]
                co = math.cos(angle)
                si = math.sin(angle)
                yc += y[k] * co
                ys += y[k] * si
                c2 += co * co
                s2 += si * si
                sc += si * co
            turn = half * math.atan2(two * sc, c2 - s2)
            co = math.cos(turn)
            si = math.sin(turn)
            mixed = two * co * si * sc
            a = co * yc + si * ys
            b = co * ys - si * yc
            out[f] = half * (
                a * a / (co * co * c2 + mixed + si * si * s2) + b * b / (co * co * s2 - mixed + si * si * c2)
            )

    return lomb


def ls_numba_fastmath(t, y, freqs, out):
    known = {}
    for numpy_name, numba_type in (("float32", float32), ("float64", float64)):
        if out.dtype.name == numpy_name and numpy_name not in known:
            known[numpy_name] = build(numba_type)
    blocks = 20 * cuda.get_current_device().MULTIPROCESSOR_COUNT
    known[out.dtype.name][blocks, 128](t, y, freqs, out)
