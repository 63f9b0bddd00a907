# mistake: a bound of 64 threads, but blocks of 128
# says: `__launch_bounds__` sets the largest block
# runs: simulator

import cupy as cp
import numpy as np

source = r"""
template <typename T>
__device__ void lombscargle(const int samples, const int frequencies, const T* __restrict__ t,
                            const T* __restrict__ y, const T* __restrict__ freqs, T* __restrict__ out) {
    const int first = blockIdx.x * blockDim.x + threadIdx.x, stride = blockDim.x * gridDim.x;
    for (int i = first; i < frequencies; i += stride) {
        const T w = freqs[i];
        T xc = 0, xs = 0, cc = 0, ss = 0, cs = 0;
        for (int j = 0; j < samples; ++j) {
            const T c = cos(w * t[j]), s = sin(w * t[j]);
            xc += y[j] * c;
            xs += y[j] * s;
            cc += c * c;
            ss += s * s;
            cs += c * s;
        }
        const T tau = atan2(2 * cs, cc - ss) / (2 * w);
        const T c = cos(w * tau), s = sin(w * tau), mixed = 2 * c * s * cs;
        const T along = c * xc + s * xs, across = c * xs - s * xc;
        out[i] = (along * along / (c * c * cc + mixed + s * s * ss)
                + across * across / (c * c * ss - mixed + s * s * cc)) / 2;
    }
}

extern "C" __global__ void __launch_bounds__(64) lombscargle_float32(
        const int samples, const int frequencies, const float* __restrict__ t, const float* __restrict__ y,
        const float* __restrict__ freqs, float* __restrict__ out) {
    lombscargle<float>(samples, frequencies, t, y, freqs, out);
}

extern "C" __global__ void __launch_bounds__(64) lombscargle_float64(
        const int samples, const int frequencies, const double* __restrict__ t, const double* __restrict__ y,
        const double* __restrict__ freqs, double* __restrict__ out) {
    lombscargle<double>(samples, frequencies, t, y, freqs, out);
}
"""
kernels = {}


def ls_cupy_launch_bounds(t, y, freqs, out):
    if out.dtype not in kernels:
        module = cp.RawModule(code=source, options=("--use_fast_math",))
        blocks = 20 * cp.cuda.Device().attributes["MultiProcessorCount"]
        kernels[out.dtype] = module.get_function(f"lombscargle_{out.dtype}"), blocks
    kernel, blocks = kernels[out.dtype]
    kernel((blocks,), (128,), (np.int32(t.size), np.int32(freqs.size), t, y, freqs, out))
