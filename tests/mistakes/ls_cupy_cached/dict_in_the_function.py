# mistake: the dict is a local variable, so each call begins with an empty one
# says: The module is loaded again in later calls
# on_gpu: as fast as a module loaded in every call
# runs: anywhere
from string import Template

import cupy as cp
import numpy as np

source = Template(r"""
extern "C" __global__ void lombscargle(const int samples, const int frequencies, const $T* __restrict__ t,
                                       const $T* __restrict__ y, const $T* __restrict__ freqs, $T* __restrict__ out) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < frequencies; i += gridDim.x * blockDim.x) {
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
        const $T tau = atan2(2 * cs, cc - ss) / (2 * w);
        const $T c = cos(w * tau), s = sin(w * tau);
        const $T p = c * xc + s * xs, q = c * xs - s * xc;
        const $T both = 2 * c * s * cs;
        out[i] = 0.5 * (p * p / (c * c * cc + both + s * s * ss) + q * q / (c * c * ss - both + s * s * cc));
    }
}
""")


kernels = {}


def ls_cupy_cached(t, y, freqs, out):
    kernels = {}
    if out.dtype not in kernels:
        text = source.substitute(T={"float32": "float", "float64": "double"}[out.dtype.name])
        kernel = cp.RawModule(code=text).get_function("lombscargle")
        kernels[out.dtype] = kernel, 20 * cp.cuda.Device().attributes["MultiProcessorCount"]
    kernel, blocks = kernels[out.dtype]
    kernel((blocks,), (128,), (np.int32(t.size), np.int32(freqs.size), t, y, freqs, out))
