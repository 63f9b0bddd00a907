# slow: one thread per frequency and sample, and neighbouring threads add to the same five sums
# cause: atomics
# blind: missed
import math

from numba import cuda


@cuda.jit
def clear(sums):
    for i in range(cuda.grid(1), sums.shape[1], cuda.gridsize(1)):
        for k in range(5):
            sums[k, i] = 0.0


@cuda.jit
def add_pairs(t, y, freqs, sums):
    sample = cuda.threadIdx.x + cuda.blockIdx.y * cuda.blockDim.x
    if sample >= t.size:
        return
    for i in range(cuda.blockIdx.x, freqs.size, cuda.gridDim.x):
        phase = freqs[i] * t[sample]
        c = math.cos(phase)
        s = math.sin(phase)
        cuda.atomic.add(sums, (0, i), y[sample] * c)
        cuda.atomic.add(sums, (1, i), y[sample] * s)
        cuda.atomic.add(sums, (2, i), c * c)
        cuda.atomic.add(sums, (3, i), s * s)
        cuda.atomic.add(sums, (4, i), c * s)


@cuda.jit
def finish(freqs, sums, out):
    i = cuda.grid(1)
    if i < freqs.size:
        w = freqs[i]
        xc, xs, cc, ss, cs = sums[0, i], sums[1, i], sums[2, i], sums[3, i], sums[4, i]
        tau = math.atan2(2.0 * cs, cc - ss) / (2.0 * w)
        c, s = math.cos(w * tau), math.sin(w * tau)
        first = (c * xc + s * xs) ** 2 / (c * c * cc + 2.0 * c * s * cs + s * s * ss)
        second = (c * xs - s * xc) ** 2 / (c * c * ss - 2.0 * c * s * cs + s * s * cc)
        out[i] = 0.5 * (first + second)


def ls_numba_baseline(t, y, freqs, out):
    sums = cuda.device_array((5, freqs.size), dtype=out.dtype)
    per_frequency = (freqs.size + 127) // 128
    clear[per_frequency, 128](sums)
    across = min(freqs.size, 8 * cuda.get_current_device().MULTIPROCESSOR_COUNT)
    add_pairs[(across, (t.size + 127) // 128), 128](t, y, freqs, sums)
    finish[per_frequency, 128](freqs, sums, out)
