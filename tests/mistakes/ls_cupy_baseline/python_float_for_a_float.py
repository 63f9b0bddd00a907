# mistake: a Python float for a parameter of type float: CuPy passes the eight bytes of a double
# says: pass `np.float32(…)`
# on_gpu: tau is missing
# runs: anywhere

import cupy as cp
import numpy as np

SRC = r"""
extern "C" __global__ void p(int m, int n, float half, const REAL* t, const REAL* y, const REAL* f, REAL* o) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        REAL xc = 0, xs = 0, cc = 0, ss = 0, cs = 0, w = f[i];
        for (int j = 0; j < m; j++) {
            REAL a = w * t[j], c = cos(a), s = sin(a);
            xc += y[j] * c; xs += y[j] * s; cc += c * c; ss += s * s; cs += c * s;
        }
        REAL tau = REAL(half) * atan2(2 * cs, cc - ss), c = cos(tau), s = sin(tau), d = 2 * c * s * cs;
        REAL u = c * xc + s * xs, v = c * xs - s * xc;
        o[i] = (u * u / (c * c * cc + d + s * s * ss) + v * v / (c * c * ss - d + s * s * cc)) / 2;
    }
}
"""


def ls_cupy_baseline(t, y, freqs, out):
    real = {"f": "float", "d": "double"}[out.dtype.char]
    k = cp.RawModule(code=SRC, options=("-DREAL=" + real,)).get_function("p")
    blocks = 20 * cp.cuda.Device().attributes["MultiProcessorCount"]
    k((blocks,), (128,), (np.int32(t.size), np.int32(freqs.size), 0.5, t, y, freqs, out))
