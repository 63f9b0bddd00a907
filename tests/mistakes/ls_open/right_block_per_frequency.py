# right: Numba, a block per frequency, with a tree of sums
# runs: anywhere
import math

from numba import cuda, float32

THREADS = 128


@cuda.jit
def power_kernel(t, y, freqs, out):
    sums = cuda.shared.array((4, THREADS), float32)
    tid = cuda.threadIdx.x
    k = cuda.blockIdx.x
    w = freqs[k]
    a = float32(0)
    b = float32(0)
    cc = float32(0)
    d = float32(0)
    for i in range(tid, t.size, THREADS):
        c = math.cos(w * t[i])
        s = math.sin(w * t[i])
        a += y[i] * c
        b += y[i] * s
        cc += c * c
        d += c * s
    sums[0, tid] = a
    sums[1, tid] = b
    sums[2, tid] = cc
    sums[3, tid] = d
    cuda.syncthreads()
    step = THREADS // 2
    while step > 0:
        if tid < step:
            for row in range(4):
                sums[row, tid] += sums[row, tid + step]
        cuda.syncthreads()
        step //= 2
    if tid == 0:
        a, b, cc, d = sums[0, 0], sums[1, 0], sums[2, 0], sums[3, 0]
        ss = t.size - cc
        tau = math.atan2(2 * d, cc - ss) / 2
        c, s = math.cos(tau), math.sin(tau)
        both = 2 * c * s * d
        out[k] = 0.5 * (
            (c * a + s * b) ** 2 / (c * c * cc + both + s * s * ss)
            + (c * b - s * a) ** 2 / (c * c * ss - both + s * s * cc)
        )


def ls_open(t, y, freqs, out):
    power_kernel[freqs.size, THREADS](t, y, freqs, out)
