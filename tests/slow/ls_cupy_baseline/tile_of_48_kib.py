# slow: each block of 64 threads declares 48 KiB of shared memory, so an SM holds only four blocks
# cause: low occupancy
# blind: missed
import cupy as cp
import numpy as np

CODE = r"""
#define TILE (49152 / (2 * (int)sizeof(REAL)))  // as many samples as fit

extern "C" __global__ void periodogram(const REAL* t, const REAL* y, const REAL* freqs, REAL* out, int n, int m) {
    __shared__ REAL times[TILE];
    __shared__ REAL values[TILE];
    for (int base = blockIdx.x * blockDim.x; base < m; base += gridDim.x * blockDim.x) {
        const int i = base + threadIdx.x;
        const REAL w = i < m ? freqs[i] : (REAL)1;
        REAL xc = 0, xs = 0, cc = 0, ss = 0, cs = 0;
        for (int start = 0; start < n; start += TILE) {
            const int held = min(TILE, n - start);
            __syncthreads();
            for (int j = threadIdx.x; j < held; j += blockDim.x) {
                times[j] = t[start + j];
                values[j] = y[start + j];
            }
            __syncthreads();
            for (int j = 0; j < held; ++j) {
                const REAL c = cos(w * times[j]), s = sin(w * times[j]);
                xc += values[j] * c;
                xs += values[j] * s;
                cc += c * c;
                ss += s * s;
                cs += c * s;
            }
        }
        if (i < m) {
            const REAL angle = atan2(2 * cs, cc - ss) / 2;
            const REAL c = cos(angle), s = sin(angle), mixed = 2 * c * s * cs;
            const REAL p = c * xc + s * xs, q = c * xs - s * xc;
            out[i] = (p * p / (c * c * cc + mixed + s * s * ss) + q * q / (c * c * ss - mixed + s * s * cc)) / 2;
        }
    }
}
"""


def ls_cupy_baseline(t, y, freqs, out):
    real = "double" if out.dtype == np.float64 else "float"
    kernel = cp.RawKernel(CODE.replace("REAL", real), "periodogram")
    blocks = 20 * cp.cuda.Device().attributes["MultiProcessorCount"]
    kernel((blocks,), (64,), (t, y, freqs, out, np.int32(t.size), np.int32(freqs.size)))
