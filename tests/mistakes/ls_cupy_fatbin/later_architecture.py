# mistake: the architecture is fixed, and later than the GPU
# says: it was built for another architecture
# runs: simulator

import subprocess
from pathlib import Path
from string import Template

import cupy as cp
import numpy as np

source = Template(r"""
extern "C" __global__ void $name(const int samples, const int frequencies, const $T* __restrict__ t,
                                 const $T* __restrict__ y, const $T* __restrict__ freqs, $T* __restrict__ out) {
    const int first = blockIdx.x * blockDim.x + threadIdx.x, stride = blockDim.x * gridDim.x;
    for (int i = first; i < frequencies; i += stride) {
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
        const $T c = cos$f(w * tau), s = sin$f(w * tau), mixed = 2.0$f * c * s * cs;
        const $T along = c * xc + s * xs, across = c * xs - s * xc;
        out[i] = 0.5$f * (along * along / (c * c * cc + mixed + s * s * ss)
                        + across * across / (c * c * ss - mixed + s * s * cc));
    }
}
""")


def build():
    single = source.substitute(name="lombscargle_float32", T="float", f="f")
    double = source.substitute(name="lombscargle_float64", T="double", f="")
    Path("lombscargle.cu").write_text(single + double)
    flags = ["--use_fast_math", "-arch=sm_120", "-o", "lombscargle.fatbin"]
    subprocess.run(["nvcc", "--fatbin", *flags, "lombscargle.cu"], check=True, capture_output=True, text=True)


kernels = {}


def ls_cupy_fatbin(t, y, freqs, out):
    if not Path("lombscargle.fatbin").exists():
        build()
    if out.dtype not in kernels:
        blocks = 20 * cp.cuda.Device().attributes["MultiProcessorCount"]
        module = cp.RawModule(path="./lombscargle.fatbin")
        kernels[out.dtype] = module.get_function(f"lombscargle_{out.dtype}"), blocks
    kernel, blocks = kernels[out.dtype]
    kernel((blocks,), (128,), (np.int32(t.size), np.int32(freqs.size), t, y, freqs, out))
