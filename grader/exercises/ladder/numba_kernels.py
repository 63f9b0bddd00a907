"""The rungs in Numba as baselines: each is what the rung below hands up, and stands on its own in a worker."""

from __future__ import annotations

from typing import Any

from grader.exercise import Baseline
from grader.exercises.ladder.power import eager

__all__ = ["EAGER", "NUMBA_BASELINE", "NUMBA_FASTMATH", "NUMBA_TYPED", "as_they_are"]

cuda: Any  # set by each function, which a worker runs without this module
math: Any


def as_they_are(entry: Any, t: Any, y: Any, freqs: Any, out: Any) -> None:
    """The harness of a baseline in torch, where the exercise's would hand it another library's arrays."""
    entry(t, y, freqs, out)


def _numba_baseline(t: Any, y: Any, freqs: Any, out: Any) -> None:
    global cuda, math  # Numba's simulator looks for `cuda` among a kernel's globals
    import math

    from numba import cuda

    kernel = globals().get("_kernel")
    if kernel is None:

        @cuda.jit  # type: ignore[untyped-decorator]
        def power(t: Any, y: Any, freqs: Any, out: Any) -> None:
            for i in range(cuda.grid(1), freqs.size, cuda.gridsize(1)):
                w = freqs[i]
                xc = xs = cc = ss = cs = 0.0
                for j in range(t.size):
                    c, s = math.cos(w * t[j]), math.sin(w * t[j])
                    xc += y[j] * c
                    xs += y[j] * s
                    cc += c * c
                    ss += s * s
                    cs += c * s
                tau = math.atan2(2.0 * cs, cc - ss) / (2.0 * w)
                c, s = math.cos(w * tau), math.sin(w * tau)
                along = (c * xc + s * xs) ** 2 / (c * c * cc + 2.0 * c * s * cs + s * s * ss)
                across = (c * xs - s * xc) ** 2 / (c * c * ss - 2.0 * c * s * cs + s * s * cc)
                out[i] = 0.5 * (along + across)

        kernel = globals()["_kernel"] = power
    kernel[20 * cuda.get_current_device().MULTIPROCESSOR_COUNT, 128](t, y, freqs, out)


def _numba_typed(t: Any, y: Any, freqs: Any, out: Any) -> None:
    global cuda, math
    import math

    from numba import cuda, from_dtype, int32, void

    kernels = globals().setdefault("_kernels", {})
    if out.dtype not in kernels:
        real = from_dtype(out.dtype)

        @cuda.jit(void(*[real[::1]] * 4))  # type: ignore[untyped-decorator]
        def power(t: Any, y: Any, freqs: Any, out: Any) -> None:
            for i in range(int32(cuda.grid(1)), int32(freqs.size), int32(cuda.gridsize(1))):
                w = freqs[i]
                xc = xs = cc = ss = cs = real(0.0)
                for j in range(int32(t.size)):
                    c, s = math.cos(w * t[j]), math.sin(w * t[j])
                    xc += y[j] * c
                    xs += y[j] * s
                    cc += c * c
                    ss += s * s
                    cs += c * s
                two = real(2.0)
                tau = math.atan2(two * cs, cc - ss) / (two * w)
                c, s = math.cos(w * tau), math.sin(w * tau)
                along = (c * xc + s * xs) ** 2 / (c * c * cc + two * c * s * cs + s * s * ss)
                across = (c * xs - s * xc) ** 2 / (c * c * ss - two * c * s * cs + s * s * cc)
                out[i] = real(0.5) * (along + across)

        kernels[out.dtype] = power
    kernels[out.dtype][20 * cuda.get_current_device().MULTIPROCESSOR_COUNT, 128](t, y, freqs, out)


def _numba_fastmath(t: Any, y: Any, freqs: Any, out: Any) -> None:
    global cuda, math
    import math

    from numba import cuda, from_dtype, int32, void

    kernels = globals().setdefault("_fast_kernels", {})
    if out.dtype not in kernels:
        real = from_dtype(out.dtype)

        @cuda.jit(void(*[real[::1]] * 4), fastmath=True)  # type: ignore[untyped-decorator]
        def power(t: Any, y: Any, freqs: Any, out: Any) -> None:
            for i in range(int32(cuda.grid(1)), int32(freqs.size), int32(cuda.gridsize(1))):
                w = freqs[i]
                xc = xs = cc = ss = cs = real(0.0)
                for j in range(int32(t.size)):
                    c, s = math.cos(w * t[j]), math.sin(w * t[j])
                    xc += y[j] * c
                    xs += y[j] * s
                    cc += c * c
                    ss += s * s
                    cs += c * s
                two = real(2.0)
                tau = math.atan2(two * cs, cc - ss) / (two * w)
                c, s = math.cos(w * tau), math.sin(w * tau)
                along = (c * xc + s * xs) ** 2 / (c * c * cc + two * c * s * cs + s * s * ss)
                across = (c * xs - s * xc) ** 2 / (c * c * ss - two * c * s * cs + s * s * cc)
                out[i] = real(0.5) * (along + across)

        kernels[out.dtype] = power
    kernels[out.dtype][20 * cuda.get_current_device().MULTIPROCESSOR_COUNT, 128](t, y, freqs, out)


EAGER = Baseline("eager", "the eager sequence in torch", eager, harness=as_they_are)
NUMBA_BASELINE = Baseline("baseline", "the Numba baseline", _numba_baseline)
NUMBA_TYPED = Baseline("typed", "the typed kernel", _numba_typed)
NUMBA_FASTMATH = Baseline("fastmath", "the fast-math kernel", _numba_fastmath)
