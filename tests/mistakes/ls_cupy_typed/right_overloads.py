# right: types by a compiler macro, functions by C++ overloads
# runs: anywhere

import cupy as cp
import numpy as np

source = r"""
extern "C" __global__ void power(const real* t, const real* y, const real* freqs, real* out, int samples, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    real yc = 0, ys = 0, c2 = 0, both = 0;
    for (int j = 0; j < samples; ++j) {
        const real phase = freqs[i] * t[j], c = cos(phase), s = sin(phase);
        yc += y[j] * c;
        ys += y[j] * s;
        c2 += c * c;
        both += c * s;
    }
    const real s2 = real(samples) - c2, angle = atan2(real(2) * both, c2 - s2) / real(2);
    const real c = cos(angle), s = sin(angle);
    const real p = c * yc + s * ys, q = c * ys - s * yc, mixed = real(2) * c * s * both;
    out[i] = (p * p / (c * c * c2 + mixed + s * s * s2) + q * q / (c * c * s2 - mixed + s * s * c2)) / real(2);
}
"""
kernels = {}


def ls_cupy_typed(t, y, freqs, out):
    kind = "float" if out.dtype == np.float32 else "double"
    if kind not in kernels:
        kernels[kind] = cp.RawModule(code=source, options=(f"-Dreal={kind}",)).get_function("power")
    kernels[kind]((-(-out.size // 128),), (128,), (t, y, freqs, out, np.int32(t.size), np.int32(out.size)))
