# right: a RawKernel, and a launch as large as the work
# runs: anywhere

import cupy as cp
import numpy as np

KERNEL = r"""
typedef TYPE real;
extern "C" __global__ void power(const real* t, const real* y, const real* w, real* out, int n, int m) {
    int k = blockIdx.x * 256 + threadIdx.x;
    if (k >= m) return;
    real xc = 0, xs = 0, cc = 0, cs = 0;
    for (int j = 0; j < n; ++j) {
        real s, c;
        sincos(w[k] * t[j], &s, &c);
        xc += y[j] * c, xs += y[j] * s, cc += c * c, cs += c * s;
    }
    real ss = n - cc, s, c;
    sincos(atan2(2 * cs, cc - ss) / 2, &s, &c);
    real a = c * xc + s * xs, b = c * xs - s * xc;
    real p = c * c * cc + 2 * c * s * cs + s * s * ss, q = c * c * ss - 2 * c * s * cs + s * s * cc;
    out[k] = (a * a / p + b * b / q) / 2;
}
"""


def ls_cupy_baseline(t, y, freqs, out):
    code = KERNEL.replace("TYPE", {"float32": "float", "float64": "double"}[str(out.dtype)])
    power = cp.RawKernel(code, "power")
    power((-(-out.size // 256),), (256,), (t, y, freqs, out, np.int32(t.size), np.int32(out.size)))
