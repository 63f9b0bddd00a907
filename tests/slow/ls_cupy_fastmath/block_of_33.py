# slow: blocks of 33 threads, so each second warp has a single thread
# cause: partial warps
from string import Template

import cupy as cp
import numpy as np

source = Template(r"""
extern "C" __global__ void ls(int n, int m, const $real* __restrict__ t, const $real* __restrict__ y,
                              const $real* __restrict__ w, $real* __restrict__ out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    while (i < m) {
        $real a = 0, b = 0, c = 0, d = 0, e = 0;
        for (int j = 0; j < n; j++) {
            $real si, co;
            sincos$f(w[i] * t[j], &si, &co);
            a += y[j] * co;
            b += y[j] * si;
            c += co * co;
            d += si * si;
            e += co * si;
        }
        $real si, co;
        sincos$f(0.5$f * atan2$f(2.0$f * e, c - d), &si, &co);
        $real cross = 2.0$f * si * co * e, p = co * a + si * b, q = co * b - si * a;
        out[i] = 0.5$f * (p * p / (co * co * c + cross + si * si * d) + q * q / (co * co * d - cross + si * si * c));
        i += blockDim.x * gridDim.x;
    }
}
""")
compiled = {}


def ls_cupy_fastmath(t, y, freqs, out):
    key = out.dtype.name
    if key not in compiled:
        types = {"real": "float", "f": "f"} if key == "float32" else {"real": "double", "f": ""}
        compiled[key] = cp.RawKernel(source.substitute(types), "ls", options=("--use_fast_math",))
    threads = 33
    blocks = min(-(-freqs.size // threads), 64 * cp.cuda.Device().attributes["MultiProcessorCount"])
    compiled[key]((blocks,), (threads,), (np.int32(t.size), np.int32(freqs.size), t, y, freqs, out))
