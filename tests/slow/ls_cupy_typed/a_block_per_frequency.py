# slow: the threads of a block share a frequency and add every sample to the same five numbers with atomicAdd
# cause: atomics
from string import Template

import cupy as cp
import numpy as np

source = Template(r"""
extern "C" __global__ void lombscargle(const int samples, const int frequencies, const $T* __restrict__ t,
                                       const $T* __restrict__ y, const $T* __restrict__ freqs, $T* __restrict__ out) {
    __shared__ $T sums[5];  // xc, xs, cc, ss, cs
    for (int i = blockIdx.x; i < frequencies; i += gridDim.x) {
        if (threadIdx.x < 5) sums[threadIdx.x] = 0;
        __syncthreads();
        const $T w = freqs[i];
        for (int j = threadIdx.x; j < samples; j += blockDim.x) {
            const $T c = cos$f(w * t[j]), s = sin$f(w * t[j]);
            atomicAdd(&sums[0], y[j] * c);
            atomicAdd(&sums[1], y[j] * s);
            atomicAdd(&sums[2], c * c);
            atomicAdd(&sums[3], s * s);
            atomicAdd(&sums[4], c * s);
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            const $T xc = sums[0], xs = sums[1], cc = sums[2], ss = sums[3], cs = sums[4];
            const $T tau = atan2$f(2.0$f * cs, cc - ss) / (2.0$f * w);
            const $T c = cos$f(w * tau), s = sin$f(w * tau), mixed = 2.0$f * c * s * cs;
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
        blocks = 20 * cp.cuda.Device().attributes["MultiProcessorCount"]
        kernels[out.dtype] = cp.RawModule(code=source.substitute(names)).get_function("lombscargle"), blocks
    kernel, blocks = kernels[out.dtype]
    kernel((blocks,), (128,), (np.int32(t.size), np.int32(freqs.size), t, y, freqs, out))
