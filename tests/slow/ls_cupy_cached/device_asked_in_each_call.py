# slow: every call asks the driver for all attributes of the device, which takes the host far longer than the launch
# cause: host time
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
        for (int j = 0; j < samples; ++j) {
            const $T c = cos(w * t[j]), s = sin(w * t[j]);
            xc += y[j] * c;
            xs += y[j] * s;
            cc += c * c;
            ss += s * s;
            cs += c * s;
        }
        const $T tau = atan2(2 * cs, cc - ss) / (2.0 * w);
        const $T c = cos(w * tau), s = sin(w * tau), mixed = 2.0 * c * s * cs;
        const $T along = c * xc + s * xs, across = c * xs - s * xc;
        out[i] = 0.5 * (along * along / (c * c * cc + mixed + s * s * ss)
                      + across * across / (c * c * ss - mixed + s * s * cc));
    }
}
""")
kernels = {}


def ls_cupy_cached(t, y, freqs, out):
    if out.dtype not in kernels:
        code = source.substitute(T="float" if out.dtype == np.float32 else "double")
        kernels[out.dtype] = cp.RawModule(code=code).get_function("lombscargle")
    kernel = kernels[out.dtype]
    blocks = 20 * cp.cuda.Device().attributes["MultiProcessorCount"]
    kernel((blocks,), (128,), (np.int32(t.size), np.int32(freqs.size), t, y, freqs, out))
