# mistake: the promise is the largest block that any kernel may have
# says: launch bounds allow 1,024 threads per block, as many as any block has
# runs: simulator
import cupy as cp
import numpy as np

source = r"""
template <typename T>
__device__ void lombscargle(const int samples, const int frequencies, const T* __restrict__ t,
                            const T* __restrict__ y, const T* __restrict__ freqs, T* __restrict__ out) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < frequencies; i += gridDim.x * blockDim.x) {
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
        const T half = T(0.5) * atan2(T(2) * cs, cc - ss);
        const T c = cos(half), s = sin(half);
        const T p = c * xc + s * xs, q = c * xs - s * xc;
        const T both = T(2) * c * s * cs;
        out[i] = T(0.5) * (p * p / (c * c * cc + both + s * s * ss) + q * q / (c * c * ss - both + s * s * cc));
    }
}

extern "C" __global__ void __launch_bounds__(1024) lombscargle_float32(
        const int samples, const int frequencies, const float* __restrict__ t,
        const float* __restrict__ y, const float* __restrict__ freqs, float* __restrict__ out) {
    lombscargle<float>(samples, frequencies, t, y, freqs, out);
}

extern "C" __global__ void __launch_bounds__(1024) lombscargle_float64(
        const int samples, const int frequencies, const double* __restrict__ t,
        const double* __restrict__ y, const double* __restrict__ freqs, double* __restrict__ out) {
    lombscargle<double>(samples, frequencies, t, y, freqs, out);
}
"""
kernels = {}


def ls_cupy_launch_bounds(t, y, freqs, out):
    if out.dtype not in kernels:
        module = cp.RawModule(code=source, options=("--use_fast_math",))
        kernels[out.dtype] = module.get_function(f"lombscargle_{out.dtype.name}")
    blocks = 20 * cp.cuda.Device().attributes["MultiProcessorCount"]
    kernels[out.dtype]((blocks,), (128,), (np.int32(t.size), np.int32(freqs.size), t, y, freqs, out))
