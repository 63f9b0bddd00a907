"""Climb with CuPy: six rungs of the Lomb–Scargle ladder, each timed against the rung below or its own change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from grader.exercise import Baseline, Exercise, Gate, Suspect
from grader.exercises.numba_cupy.ladder_cases import TIMED, eager, ladder_case
from grader.exercises.numba_cupy.ladder_rungs import BEYOND_THE_GRID, HALF, SUSPECTS, UNWRITTEN, ZEROS, rung

_NOTEBOOK = "03_climb_with_cupy"
_SMALL = ladder_case(64, 1_024)  # it ends before the host's next launch, so the time is the host's
_SMALL_LAUNCHES = 64


def cupy_arrays(entry: Any, t: Any, y: Any, freqs: Any, out: Any) -> None:
    """The harness of the CuPy rungs: the entry point gets CuPy arrays, without copies."""
    from grader.worker.arrays import call_with_arrays

    call_with_arrays(entry, t, y, freqs, out)


def _tensors(entry: Any, t: Any, y: Any, freqs: Any, out: Any) -> None:
    """The harness of a baseline in torch."""
    entry(t, y, freqs, out)


def _rebuilt(t: Any, y: Any, freqs: Any, out: Any) -> None:
    from grader.worker.harnesses.ladder_kernels import launch_rebuilt

    launch_rebuilt(t, y, freqs, out)


def _accurate(t: Any, y: Any, freqs: Any, out: Any) -> None:
    from grader.worker.harnesses.ladder_kernels import launch

    launch(t, y, freqs, out, fast=False)


def _fast(t: Any, y: Any, freqs: Any, out: Any) -> None:
    from grader.worker.harnesses.ladder_kernels import launch

    launch(t, y, freqs, out, fast=True)


_EAGER = Baseline("eager", "the sums in torch", eager, _tensors)
_REBUILT = Baseline("baseline", "a module loaded in every call", _rebuilt)
_ACCURATE = Baseline("accurate", "the kernel with accurate sine and cosine", _accurate)
BOUNDS_PEER = Baseline("fast", "the kernel with fast sine and cosine", _fast, cupy_arrays)
_LARGE = (TIMED[0].name,)


def _first_argument_lost(a: Any) -> Any:
    """NaN everywhere, from 0 / 0: the number of samples arrived as 0."""
    return a["expected"] * float("nan") if a["freqs"].numel() >= 200 else None


_ARGUMENTS = Suspect(
    "Every power is NaN, from a sum over no samples or from uninitialised memory. Do the arguments match the "
    "kernel's parameters, in order? CuPy passes a Python `int` as 8 bytes and a `float` as a double, and the driver "
    "copies as many bytes as the parameter has.",
    _first_argument_lost,
)  # fmt: skip
_ZERO = Suspect(
    "Every power is 0: is a sum or result stored in one variable and read from a different one, or does an argument "
    "have the wrong type?",
    lambda a: a["expected"] * 0,
)  # fmt: skip

_SHARED = tuple(
    suspect for suspect in SUSPECTS if suspect not in (UNWRITTEN, ZEROS)
)  # NaN and 0 have different causes here


def _cupy(
    exercise_id: str, title: str, baselines: tuple[Baseline, ...], gates: tuple[Gate, ...], hints: tuple[str, ...]
) -> Exercise:
    found = rung(
        exercise_id,
        title,
        _NOTEBOOK,
        "cupy",
        baselines=baselines,
        gates=gates,
        hints=hints,
        harness=cupy_arrays,
        library=("sin", "cos", "sincos"),
        time_limit_s=90.0,  # nvcc and NVRTC may both run, on a busy machine
    )
    return replace(found, suspects=(HALF, *BEYOND_THE_GRID, _ARGUMENTS, _ZERO, *_SHARED))


LS_CUPY_BASELINE = _cupy(
    "ls_cupy_baseline",
    "Climb with CuPy: a raw module",
    (_EAGER,),
    (Gate("eager", 3.0, 2, _LARGE),),
    (
        "A thread starts with the frequency of its index in the grid and steps by the number of threads in the grid.",
        "Keep five sums in registers, over all samples: y c, y s, c c, s s and c s, where c and s are cosine and "
        "sine of w t.",
        "tau is atan2(2 D, C - S) / (2 w). You need the cosine and the sine of w tau.",
        "`Template.substitute(T='float')` inserts the type for `$T`.",
    ),
)
LS_CUPY_CACHED = replace(
    _cupy(
        "ls_cupy_cached",
        "Climb with CuPy: a cache of your own",
        (_REBUILT,),
        (Gate("baseline", 1.2, 2, (_SMALL.name,)),),
        (
            "A dict at module level lives as long as the process.",
            "What does the kernel depend on? All of it belongs in the key.",
            "The number of multiprocessors does not change either, and querying it takes time.",
        ),
    ),
    timed_cases=(_SMALL,),
    launches=_SMALL_LAUNCHES,
    of_the_host=True,
)
LS_CUPY_TYPED = _cupy(
    "ls_cupy_typed",
    "Climb with CuPy: one kernel per type",
    (_ACCURATE,),
    (Gate("accurate", 0.95, 2, _LARGE),),
    (
        "`2.0` is a double and makes its products doubles. `2.0f` is a float.",
        "`cosf`, `sinf` and `atan2f` take floats; `cos`, `sin` and `atan2` take doubles (in C++ also floats).",
        "Insert the suffix with a second name in the template: `cos$f`, `2.0$f`.",
    ),
)
LS_CUPY_FASTMATH = _cupy(
    "ls_cupy_fastmath",
    "Climb with CuPy: fast math",
    (_ACCURATE,),
    (Gate("accurate", 2.5, 2, _LARGE),),
    (
        "NVRTC takes its options as a tuple of strings: `options=('--use_fast_math',)`.",
        "It replaces `sinf` and `cosf`. Doubles stay as they are.",
    ),
)
LS_CUPY_FATBIN = _cupy(
    "ls_cupy_fatbin",
    "Climb with CuPy: a precompiled kernel",
    (_ACCURATE,),
    (Gate("accurate", 2.5, 2, _LARGE),),
    (
        "One file holds the kernels for both types, each with its own name.",
        "`nvcc --fatbin -arch=sm_90 -o kernels.fatbin kernels.cu` compiles for one architecture.",
        "`cp.RawModule(path=…)` takes a string and no options: nvcc has already used them.",
        "With `subprocess.run(…, check=True, capture_output=True)`, the report can show nvcc's messages.",
    ),
)
LS_CUPY_LAUNCH_BOUNDS = _cupy(
    "ls_cupy_launch_bounds",
    "Climb with CuPy: launch bounds",
    (replace(BOUNDS_PEER, harness=None),),
    (Gate("fast", 0.95, 2, _LARGE),),
    (
        'A `template <typename T> __device__` function does the work; two `extern "C" __global__` kernels call it.',
        "`__launch_bounds__(128)` comes before the name: `__global__ void __launch_bounds__(128) f(…)`.",
        "The number is a promise: a launch with more threads per block fails.",
    ),
)
