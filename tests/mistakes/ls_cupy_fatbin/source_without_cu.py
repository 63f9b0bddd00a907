# mistake: the name of the source file does not end in .cu
# says: Don't know what to do with 'lombscargle.txt'
# runs: anywhere
import subprocess
from pathlib import Path
from string import Template

import cupy as cp
import numpy as np

source = Template(r"""
extern "C" __global__ void $name(const int samples, const int frequencies, const $T* __restrict__ t,
                                       const $T* __restrict__ y, const $T* __restrict__ freqs, $T* __restrict__ out) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < frequencies; i += gridDim.x * blockDim.x) {
        const $T w = freqs[i];
        $T xc = 0, xs = 0, cc = 0, ss = 0, cs = 0;
        for (int j = 0; j < samples; ++j) {
            const $T c = cos$f(w * t[j]), s = sin$f(w * t[j]);
            xc += y[j] * c;
            xs += y[j] * s;
            cc += c * c;
            ss += s * s;
            cs += c * s;
        }
        const $T tau = atan2$f(2.0$f * cs, cc - ss) / (2.0$f * w);
        const $T c = cos$f(w * tau), s = sin$f(w * tau);
        const $T p = c * xc + s * xs, q = c * xs - s * xc;
        const $T both = 2.0$f * c * s * cs;
        out[i] = 0.5$f * (p * p / (c * c * cc + both + s * s * ss) + q * q / (c * c * ss - both + s * s * cc));
    }
}
""")


TYPES = {"float32": ("float", "f"), "float64": ("double", "")}
Path("lombscargle.txt").write_text(
    "".join(source.substitute(T=T, f=f, name=f"lombscargle_{name}") for name, (T, f) in TYPES.items())
)
arch = f"-arch=sm_{cp.cuda.Device().compute_capability}"
subprocess.run(
    ["nvcc", "--fatbin", "--use_fast_math", arch, "-o", "lombscargle.fatbin", "lombscargle.txt"],
    check=True,
    capture_output=True,
    text=True,
)
kernels = {}


def ls_cupy_fatbin(t, y, freqs, out):
    if out.dtype not in kernels:
        kernel = cp.RawModule(path="lombscargle.fatbin").get_function(f"lombscargle_{out.dtype.name}")
        kernels[out.dtype] = kernel, 20 * cp.cuda.Device().attributes["MultiProcessorCount"]
    kernel, blocks = kernels[out.dtype]
    kernel((blocks,), (128,), (np.int32(t.size), np.int32(freqs.size), t, y, freqs, out))
