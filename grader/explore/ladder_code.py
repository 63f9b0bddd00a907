"""The kernels of the Lomb–Scargle ladder as compilers leave them: machine code, without a GPU."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

from grader.explore.machine_code import CodeTable, MachineCode, built_code, compare_code, cuda_code, numba_code

__all__ = ["TITLES", "compiled_ladder", "ladder_loop"]

_KERNEL = """
def power(t, y, freqs, out):
    for i in range({first}, {count}, {stride}):
        w = freqs[i]
        xc = xs = cc = ss = cs = {zero}
{loop}
            c, s = math.cos(w * t[j]), math.sin(w * t[j])
            xc += y[j] * c
            xs += y[j] * s
            cc += c * c
            ss += s * s
            cs += c * s
{step}
        tau = math.atan2({two} * cs, cc - ss) / ({two} * w)
        c, s = math.cos(w * tau), math.sin(w * tau)
        along = (c * xc + s * xs) ** 2 / (c * c * cc + {two} * c * s * cs + s * s * ss)
        across = (c * xs - s * xc) ** 2 / (c * c * ss - {two} * c * s * cs + s * s * cc)
        out[i] = {half} * (along + across)
"""
_WIDE = {"first": "cuda.grid(1)", "count": "freqs.size", "stride": "cuda.gridsize(1)"}
_PLAIN = _WIDE | {"zero": "0.0", "two": "2.0", "half": "0.5", "loop": "        for j in range(t.size):", "step": ""}
_TYPED = _PLAIN | {f"{name}": f"real({value})" for name, value in (("zero", 0.0), ("two", 2.0), ("half", 0.5))}
_TYPED |= {"first": "int32(cuda.grid(1))", "count": "int32(freqs.size)", "stride": "int32(cuda.gridsize(1))"}
_TYPED["loop"] = "        for j in range(int32(t.size)):"
_UNSIGNED = _TYPED | {
    "loop": "        j, samples = uint32(0), uint32(t.size)\n        while j < samples:",
    "step": "            j = uint32(j + uint32(1))",
}
_CUDA = r"""
extern "C" __global__ void power(int samples, int count, const float* __restrict__ t, const float* __restrict__ y,
                                 const float* __restrict__ freqs, float* __restrict__ out) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        float w = freqs[i], xc = 0, xs = 0, cc = 0, ss = 0, cs = 0;
        for (int j = 0; j < samples; ++j) {
            float c = cosf(w * t[j]), s = sinf(w * t[j]);
            xc += y[j] * c;
            xs += y[j] * s;
            cc += c * c;
            ss += s * s;
            cs += c * s;
        }
        float tau = atan2f(2 * cs, cc - ss) / (2 * w), c = cosf(w * tau), s = sinf(w * tau);
        float a = c * xc + s * xs, b = c * xs - s * xc;
        out[i] = 0.5f * (a * a / (c * c * cc + 2 * c * s * cs + s * s * ss)
                         + b * b / (c * c * ss - 2 * c * s * cs + s * s * cc));
    }
}
"""
TITLES = {
    "baseline": "Numba, baseline",
    "typed": "Numba, each type said",
    "fastmath": "Numba, fast math",
    "unsigned": "Numba, fast math, unsigned index",
    "cuda": "CUDA C++",
    "cuda fast": "CUDA C++, fast math",
}


def compiled_ladder(
    *rungs: str, max_registers: int | None = None, yours: Callable[[Any], Any] | None = None
) -> CodeTable:
    """Figures of the compiled rungs, side by side; no GPU is needed. "baseline", "typed", "fastmath", "unsigned",
    "cuda" and "cuda fast" are known.

    Args:
        max_registers: a cap for Numba's kernels.
        yours: makes a kernel of four vectors, given the type of their elements. It is left out until it is written.
    """
    cap = "" if max_registers is None else f", at most {max_registers} registers"
    codes = {TITLES[rung] + cap: _compiled(rung, max_registers) for rung in rungs}
    if yours is not None:
        try:
            codes["yours"] = built_code(yours)
        except NotImplementedError as error:
            print(f"Yours is left out: {error}.")
    return compare_code(codes)


def ladder_loop(rung: str) -> MachineCode:
    """The loop over the samples of a rung, in the instructions of the GPU."""
    return _compiled(rung, None)


@cache
def _compiled(rung: str, max_registers: int | None) -> MachineCode:
    if rung.startswith("cuda"):
        return cuda_code(_CUDA, "power", ("--use_fast_math",) if rung == "cuda fast" else ())
    function = _function({"baseline": _PLAIN, "unsigned": _UNSIGNED}.get(rung, _TYPED))
    return numba_code(function, fastmath=rung in ("fastmath", "unsigned"), max_registers=max_registers)


def _function(parts: dict[str, str]) -> Any:
    from numba import cuda, float32, int32, uint32

    scope = {"math": math, "cuda": cuda, "real": float32, "int32": int32, "uint32": uint32}
    exec(_KERNEL.format(**parts), scope)
    return scope["power"]
