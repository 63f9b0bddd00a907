# right: a separate kernel for each type, by replacing words
# runs: anywhere

import cupy as cp
import numpy as np

single = r"""
extern "C" __global__ void power(int n, int m, const float* t, const float* y, const float* freqs, float* out) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < m; i += gridDim.x * blockDim.x) {
        float w = freqs[i], xc = 0.0f, xs = 0.0f, cc = 0.0f, ss = 0.0f, cs = 0.0f;
        for (int j = 0; j < n; ++j) {
            float s, c;
            sincosf(w * t[j], &s, &c);
            xc = fmaf(y[j], c, xc);
            xs = fmaf(y[j], s, xs);
            cc = fmaf(c, c, cc);
            ss = fmaf(s, s, ss);
            cs = fmaf(c, s, cs);
        }
        float s, c;
        sincosf(0.5f * atan2f(cs + cs, cc - ss), &s, &c);
        float p = c * xc + s * xs, q = c * xs - s * xc, both = 2.0f * c * s * cs;
        out[i] = 0.5f * (p * p / (c * c * cc + both + s * s * ss) + q * q / (c * c * ss - both + s * s * cc));
    }
}
"""
double = single.replace("0.0f", "0.0").replace("0.5f", "0.5").replace("2.0f", "2.0").replace("float", "double")
double = double.replace("sincosf", "sincos").replace("atan2f", "atan2").replace("fmaf", "fma")
kernels = {"float32": cp.RawKernel(single, "power"), "float64": cp.RawKernel(double, "power")}
blocks = 20 * cp.cuda.Device().attributes["MultiProcessorCount"]


def ls_cupy_typed(t, y, freqs, out):
    kernels[out.dtype.name]((blocks,), (128,), (np.int32(t.size), np.int32(out.size), t, y, freqs, out))
