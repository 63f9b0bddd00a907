# mistake: a non-blocking stream waits for the default one, which does not wait for it
# says: nothing waits for the non-blocking stream on which this kernel runs
# runs: simulator

import cupy as cp
import numpy as np

source = r"""
template <typename T>
__global__ void power(const T* t, const T* y, const T* freqs, T* out, long long samples, long long count) {
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        T sums[5] = {0, 0, 0, 0, 0};
        for (long long j = 0; j < samples; ++j) {
            const T c = cos(freqs[i] * t[j]), s = sin(freqs[i] * t[j]);
            sums[0] += y[j] * c;
            sums[1] += y[j] * s;
            sums[2] += c * c;
            sums[3] += s * s;
            sums[4] += c * s;
        }
        const T angle = atan2(2 * sums[4], sums[2] - sums[3]) / 2, c = cos(angle), s = sin(angle);
        const T first = c * sums[0] + s * sums[1], second = c * sums[1] - s * sums[0];
        const T below = c * c * sums[2] + 2 * c * s * sums[4] + s * s * sums[3];
        out[i] = (first * first / below + second * second / (sums[2] + sums[3] - below)) / 2;
    }
}
"""

side = cp.cuda.Stream(non_blocking=True)


def ls_cupy_baseline(t, y, freqs, out):
    name = "power<float>" if out.dtype == np.float32 else "power<double>"
    module = cp.RawModule(code=source, options=("-std=c++17",), name_expressions=[name])
    kernel = module.get_function(name)
    side.wait_event(cp.cuda.Stream.null.record())
    with side:
        kernel((1024,), (64,), (t, y, freqs, out, t.size, freqs.size))
