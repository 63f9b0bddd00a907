"""The CuPy rungs of the ladder that serve as baselines: one kernel, built and called in three ways."""

from __future__ import annotations

from string import Template
from typing import Any

THREADS, BLOCKS_PER_SM = 128, 20  # as in the authors' published results
SOURCE = Template(r"""
extern "C" __global__ void power_kernel(const int samples, const int count, const $T* __restrict__ t,
                                        const $T* __restrict__ y, const $T* __restrict__ freqs, $T* __restrict__ out) {
    for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < count; at += blockDim.x * gridDim.x) {
        const $T w = freqs[at];
        $T yc = 0, ys = 0, c2 = 0, s2 = 0, both = 0;
        for (int n = 0; n < samples; ++n) {
            const $T phase = w * t[n];
            const $T c = cos$f(phase), s = sin$f(phase);
            yc += y[n] * c;
            ys += y[n] * s;
            c2 += c * c;
            s2 += s * s;
            both += c * s;
        }
        const $T turn = atan2$f(2 * both, c2 - s2) / 2;
        const $T c = cos$f(turn), s = sin$f(turn), mixed = 2 * c * s * both;
        const $T along = c * yc + s * ys, across = c * ys - s * yc;
        out[at] = (along * along / (c * c * c2 + mixed + s * s * s2)
                 + across * across / (c * c * s2 - mixed + s * s * c2)) / 2;
    }
}
""")
_OPTIONS = {True: ("--use_fast_math",), False: ()}
_kernels: dict[tuple[str, bool], Any] = {}


def launch(t: Any, y: Any, freqs: Any, out: Any, fast: bool) -> None:
    """Launch the kernel on CuPy's arrays, `fast` or not; it is built once."""
    key = (out.dtype.char, fast)
    if key not in _kernels:
        import cupy

        multiprocessors = cupy.cuda.Device().attributes["MultiProcessorCount"]
        _kernels[key] = _built(out, fast), BLOCKS_PER_SM * multiprocessors
    kernel, blocks = _kernels[key]
    _call(kernel, blocks, t, y, freqs, out)


def launch_rebuilt(t: Any, y: Any, freqs: Any, out: Any) -> None:
    """Launch the kernel after looking up the kernel and the number of multiprocessors again, as every call does."""
    import cupy

    _call(_built(out, False), BLOCKS_PER_SM * cupy.cuda.Device().attributes["MultiProcessorCount"], t, y, freqs, out)


def _built(out: Any, fast: bool) -> Any:
    import cupy

    single = out.dtype.char == "f"
    code = SOURCE.substitute(T="float" if single else "double", f="f" if single else "")
    return cupy.RawModule(code=code, options=_OPTIONS[fast]).get_function("power_kernel")


def _call(kernel: Any, blocks: int, t: Any, y: Any, freqs: Any, out: Any) -> None:
    import numpy as np

    kernel((blocks,), (THREADS,), (np.int32(t.size), np.int32(out.size), t, y, freqs, out))
