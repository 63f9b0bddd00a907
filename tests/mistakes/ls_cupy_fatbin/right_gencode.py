# right: two files, for one architecture
# runs: anywhere

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


def build(name, kind, suffix):
    file = Path(f"{name}.cu")
    file.write_text(source.substitute(name=name, T=kind, f=suffix))
    sm = cp.cuda.Device().compute_capability
    target = f"-gencode=arch=compute_{sm},code=sm_{sm}"
    options = ["-std=c++17", "--use_fast_math", target, "-o", f"{name}.fatbin"]
    subprocess.run(["nvcc", "--fatbin", *options, str(file)], check=True, capture_output=True)
    return cp.RawModule(path=f"{name}.fatbin").get_function(name)


kernels = {
    np.dtype("float32"): build("single_power", "float", "f"),
    np.dtype("float64"): build("double_power", "double", ""),
}


def ls_cupy_fatbin(t, y, freqs, out):
    kernels[out.dtype]((-(-out.size // 128),), (128,), (np.int32(t.size), np.int32(freqs.size), t, y, freqs, out))
