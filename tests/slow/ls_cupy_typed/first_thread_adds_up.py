# slow: one block per frequency, whose first thread alone adds 5 × 256 partial sums
# cause: serial tail
# blind: missed
from string import Template

import cupy as cp
import numpy as np

THREADS = 256

source = Template(r"""
extern "C" __global__ void block_per_frequency(int samples, int frequencies, const $T* t, const $T* y,
                                               const $T* freqs, $T* out) {
    __shared__ $T part[5][$N];
    const int me = threadIdx.x;
    for (int i = blockIdx.x; i < frequencies; i += gridDim.x) {
        const $T w = freqs[i];
        $T xc = 0, xs = 0, cc = 0, ss = 0, cs = 0;
        for (int j = me; j < samples; j += $N) {
            const $T c = cos$f(w * t[j]), s = sin$f(w * t[j]);
            xc += y[j] * c;
            xs += y[j] * s;
            cc += c * c;
            ss += s * s;
            cs += c * s;
        }
        part[0][me] = xc;
        part[1][me] = xs;
        part[2][me] = cc;
        part[3][me] = ss;
        part[4][me] = cs;
        __syncthreads();
        if (me == 0) {
            for (int other = 1; other < $N; ++other) {
                xc += part[0][other];
                xs += part[1][other];
                cc += part[2][other];
                ss += part[3][other];
                cs += part[4][other];
            }
            const $T angle = 0.5$f * atan2$f(2.0$f * cs, cc - ss);
            const $T c = cos$f(angle), s = sin$f(angle), mixed = 2.0$f * c * s * cs;
            const $T along = c * xc + s * xs, across = c * xs - s * xc;
            out[i] = 0.5$f * (along * along / (c * c * cc + mixed + s * s * ss)
                            + across * across / (c * c * ss - mixed + s * s * cc));
        }
        __syncthreads();
    }
}
""")
kernels = {}


def ls_cupy_typed(t, y, freqs, out):
    if out.dtype not in kernels:
        names = {"T": "float", "f": "f"} if out.dtype == np.float32 else {"T": "double", "f": ""}
        module = cp.RawModule(code=source.substitute(names, N=THREADS))
        kernels[out.dtype] = module.get_function("block_per_frequency")
    blocks = min(freqs.size, 64 * cp.cuda.Device().attributes["MultiProcessorCount"])
    kernels[out.dtype]((blocks,), (THREADS,), (np.int32(t.size), np.int32(freqs.size), t, y, freqs, out))
