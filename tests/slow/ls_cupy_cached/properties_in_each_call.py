# slow: each call asks the driver for all properties of the device, which takes longer than the kernel
# cause: host time
# blind: missed
import cupy as cp
import numpy as np

body = r"""
extern "C" __global__ void power(const int n, const int m, const T* __restrict__ t, const T* __restrict__ y,
                                 const T* __restrict__ freqs, T* __restrict__ out) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < m; i += blockDim.x * gridDim.x) {
        const T w = freqs[i];
        T xc = 0, xs = 0, cc = 0, ss = 0, cs = 0;
        for (int j = 0; j < n; ++j) {
            const T c = cos(w * t[j]), s = sin(w * t[j]);
            xc += y[j] * c;
            xs += y[j] * s;
            cc += c * c;
            ss += s * s;
            cs += c * s;
        }
        const T tau = atan2(2 * cs, cc - ss) / (2 * w);
        const T c = cos(w * tau), s = sin(w * tau), mixed = 2 * c * s * cs;
        const T a = c * xc + s * xs, b = c * xs - s * xc;
        out[i] = (a * a / (c * c * cc + mixed + s * s * ss) + b * b / (c * c * ss - mixed + s * s * cc)) / 2;
    }
}
"""
cached = {}


def kernel_for(dtype):
    if dtype.char not in cached:
        header = "typedef float T;" if dtype == np.float32 else "typedef double T;"
        cached[dtype.char] = cp.RawModule(code=header + body).get_function("power")
    return cached[dtype.char]


def grid_size():
    properties = cp.cuda.runtime.getDeviceProperties(cp.cuda.runtime.getDevice())
    return 20 * properties["multiProcessorCount"]


def ls_cupy_cached(t, y, freqs, out):
    kernel_for(out.dtype)((grid_size(),), (128,), (np.int32(t.size), np.int32(freqs.size), t, y, freqs, out))
