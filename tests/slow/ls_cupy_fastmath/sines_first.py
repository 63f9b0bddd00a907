# slow: a thread stores the sines of 256 samples in arrays of its own, which are in local memory, and then adds them
# cause: spills
from string import Template

import cupy as cp
import numpy as np

source = Template(r"""
extern "C" __global__ void lombscargle(const int samples, const int frequencies, const $T* __restrict__ t,
                                       const $T* __restrict__ y, const $T* __restrict__ freqs, $T* __restrict__ out) {
    const int first = blockIdx.x * blockDim.x + threadIdx.x, stride = blockDim.x * gridDim.x;
    for (int i = first; i < frequencies; i += stride) {
        const $T w = freqs[i];
        $T xc = 0, xs = 0, cc = 0, ss = 0, cs = 0;
        for (int begin = 0; begin < samples; begin += 256) {
            const int count = min(256, samples - begin);
            $T cosines[256], sines[256];
            for (int k = 0; k < count; ++k) {
                const $T phase = w * t[begin + k];
                cosines[k] = cos$f(phase);
                sines[k] = sin$f(phase);
            }
            for (int k = 0; k < count; ++k) {
                const int j = begin + k;
                const $T c = cosines[k], s = sines[k];
                xc += y[j] * c;
                xs += y[j] * s;
                cc += c * c;
                ss += s * s;
                cs += c * s;
            }
        }
        const $T tau = atan2$f(2.0$f * cs, cc - ss) / (2.0$f * w);
        const $T c = cos$f(w * tau), s = sin$f(w * tau), mixed = 2.0$f * c * s * cs;
        const $T along = c * xc + s * xs, across = c * xs - s * xc;
        out[i] = 0.5$f * (along * along / (c * c * cc + mixed + s * s * ss)
                        + across * across / (c * c * ss - mixed + s * s * cc));
    }
}
""")
kernels = {}


def ls_cupy_fastmath(t, y, freqs, out):
    if out.dtype not in kernels:
        names = {"T": "float", "f": "f"} if out.dtype == np.float32 else {"T": "double", "f": ""}
        module = cp.RawModule(code=source.substitute(names), options=("--use_fast_math",))
        blocks = 20 * cp.cuda.Device().attributes["MultiProcessorCount"]
        kernels[out.dtype] = module.get_function("lombscargle"), blocks
    kernel, blocks = kernels[out.dtype]
    kernel((blocks,), (128,), (np.int32(t.size), np.int32(freqs.size), t, y, freqs, out))
