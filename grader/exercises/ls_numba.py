"""Climb with Numba: five rungs of the Lomb–Scargle ladder, each against the rung below it."""

from __future__ import annotations

from dataclasses import replace

from grader.exercise import Gate
from grader.exercises.ladder import HALF, TIMED, rung
from grader.exercises.ladder.numba_kernels import EAGER, NUMBA_BASELINE, NUMBA_FASTMATH, NUMBA_TYPED

__all__ = ["LS_NUMBA_BASELINE", "LS_NUMBA_CACHED", "LS_NUMBA_FASTMATH", "LS_NUMBA_REGISTERS", "LS_NUMBA_TYPED"]

_NOTEBOOK = "02_climb_with_numba"
_TIMED = tuple(case.name for case in TIMED)
_TYPES = "Key the dictionary by `out.dtype`: a kernel for float32 reads a float64 array as if it were of float32."

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
        "Five sums in one pass over the samples: Xc, Xs, C, S and D. Begin each of them at 0 for each frequency.",
        "tau = atan2(2 D, C - S) / (2 w). The power is half the sum of the two terms.",
    ),
)
LS_NUMBA_CACHED = replace(
    rung(
        "ls_numba_cached",
        "Keep what was compiled",
        _NOTEBOOK,
        "numba",
        baselines=(NUMBA_BASELINE,),
        gates=(Gate("baseline", 0.9, 1, _TIMED),),
        suspects=(HALF,),
        hints=(
            "`from_dtype(out.dtype)` is Numba's type, `[::1]` behind it a contiguous vector of it.",
            "`cuda.jit(signature)(function)` compiles at once. Do it where the dictionary has no entry yet.",
            _TYPES,
        ),
    ),
    of_the_host=True,
)
LS_NUMBA_TYPED = rung(
    "ls_numba_typed",
    "Say each type",
    _NOTEBOOK,
    "numba",
    baselines=(NUMBA_BASELINE,),
    gates=(Gate("baseline", 1.08, 2, _TIMED),),
    suspects=(HALF,),
    hints=(
        "A literal like 0.0 is float64, and so is every sum that begins with it. `real(0.0)` is of the array's type.",
        "`2 * D` is float64, too: 2 is an int64. Write `real(2.0) * D`.",
        "`range(int32(t.size))` counts in 32 bits. So does `int32(cuda.grid(1))` in the loop over the frequencies.",
        _TYPES,
    ),
)
LS_NUMBA_FASTMATH = rung(
    "ls_numba_fastmath",
    "Let sines be fast",
    _NOTEBOOK,
    "numba",
    baselines=(NUMBA_TYPED,),
    gates=(Gate("typed", 1.5, 2, _TIMED),),
    hints=(
        "`cuda.jit(signature, fastmath=True)`: nothing else changes.",
        "A sine of your own needs its phase reduced with π in full.",
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
        "A cap below what the kernel needs makes the compiler spill to memory: look at the table of registers first.",
        "`compiled_ladder(\"fastmath\", yours=build)` says what a cap does to your kernel, without a GPU.",
    ),
)
