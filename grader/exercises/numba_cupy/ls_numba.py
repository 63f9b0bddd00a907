"""Climb with Numba: six rungs of the Lomb–Scargle ladder, each timed against an earlier one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from grader.exercise import Baseline, Gate
from grader.exercises.numba_cupy.ladder_cases import TIMED, eager
from grader.exercises.numba_cupy.ladder_rungs import HALF, rung

# The rungs as baselines. A worker gets each function's source without this module.

cuda: Any  # each function sets both
math: Any


def as_they_are(entry: Any, t: Any, y: Any, freqs: Any, out: Any) -> None:
    """The harness of a baseline in torch, which takes tensors instead of Numba's arrays."""
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

_NOTEBOOK = "02_climb_with_numba"
_TIMED = tuple(case.name for case in TIMED)
_TYPES = "Key the dictionary by `out.dtype`: a kernel for float32 reads a float64 array as if it were float32."

LS_NUMBA_BASELINE = rung(
    "ls_numba_baseline",
    "The Numba baseline",
    _NOTEBOOK,
    "numba",
    baselines=(EAGER,),
    gates=(Gate("eager", 2.0, 1, _TIMED),),
    correctness_points=3,
    hints=(
        "`for i in range(cuda.grid(1), freqs.size, cuda.gridsize(1)):` gives each thread its share of the frequencies.",
        "Compute five sums in one pass over the samples: Xc, Xs, C, S and D. Start each at 0 for each frequency.",
        "tau = atan2(2 D, C - S) / (2 w). The power is half the sum of the two terms.",
    ),
)
LS_NUMBA_CACHED = replace(
    rung(
        "ls_numba_cached",
        "Keep compiled kernels",
        _NOTEBOOK,
        "numba",
        baselines=(NUMBA_BASELINE,),
        gates=(Gate("baseline", 0.9, 1, _TIMED),),
        suspects=(HALF,),
        hints=(
            "`from_dtype(out.dtype)` is Numba's type, and `[::1]` after it makes that a contiguous vector.",
            "`cuda.jit(signature)(function)` compiles immediately. Call it if the dictionary has no entry yet.",
            _TYPES,
        ),
    ),
    of_the_host=True,
)
LS_NUMBA_TYPED = rung(
    "ls_numba_typed",
    "Declare each type",
    _NOTEBOOK,
    "numba",
    baselines=(NUMBA_BASELINE,),
    gates=(Gate("baseline", 1.08, 2, _TIMED),),
    suspects=(HALF,),
    hints=(
        "A literal like 0.0 is float64, and so is every sum that starts with it. `real(0.0)` has the array's type.",
        "`2 * D` is float64 as well, because 2 is an int64. Write `real(2.0) * D`.",
        "`range(int32(t.size))` counts in 32 bits, and so does `int32(cuda.grid(1))` in the loop over the frequencies.",
        _TYPES,
    ),
)
LS_NUMBA_FASTMATH = rung(
    "ls_numba_fastmath",
    "Use fast sines",
    _NOTEBOOK,
    "numba",
    baselines=(NUMBA_TYPED,),
    gates=(Gate("typed", 1.5, 2, _TIMED),),
    hints=(
        "Write `cuda.jit(signature, fastmath=True)`. Nothing else changes.",
        "If you write your own sine, reduce its phase with π in full precision.",
    ),
)
LS_NUMBA_REGISTERS = rung(
    "ls_numba_registers",
    "Cap the registers",
    _NOTEBOOK,
    "numba",
    baselines=(NUMBA_FASTMATH,),
    gates=(Gate("fastmath", 0.95, 1, _TIMED),),
    suspects=(HALF,),
    hints=(
        "`cuda.jit(signature, fastmath=True, max_registers=…)`.",
        "A cap below the kernel's needs makes the compiler spill to memory: check the table of registers first.",
        '`compiled_ladder("fastmath", yours=build)` shows the effect of a cap on your kernel, without a GPU.',
    ),
)
LS_NUMBA_UNSIGNED = rung(
    "ls_numba_unsigned",
    "Count with an unsigned index",
    _NOTEBOOK,
    "numba",
    baselines=(NUMBA_FASTMATH,),
    # The loop has 13 instructions per sample instead of 32, and was twice as fast on an H200.
    gates=(Gate("fastmath", 1.6, 2, _TIMED),),
    suspects=(HALF,),
    hints=(
        "`j, samples = uint32(0), uint32(t.size)` before the loop, and `while j < samples:`.",
        "Increment with `j = uint32(j + uint32(1))` at the end of the loop.",
        '`compiled_ladder("unsigned", yours=build)` shows the instructions per sample of your loop, without a GPU.',
    ),
)
