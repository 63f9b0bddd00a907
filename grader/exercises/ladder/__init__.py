"""What every rung of the Lomb–Scargle ladder shares: its cases, its inputs, its oracle, its budgets, its known bugs.

`out` is the unnormalised power, as `scipy.signal.lombscargle(t, y, freqs)` gives it: half the sum of the squared
projections on a cosine and on a sine that a shift in time, tau, makes orthogonal. A sine of amplitude A that is sampled
N times peaks near N A² / 4. Frequencies are angular. Method: Lomb, Astrophys. Space Sci. 39, 447 (1976); Scargle,
Astrophys. J. 263, 835 (1982); with the sums in one pass: Townsend, Astrophys. J. Suppl. 191, 247 (2010).
"""

from __future__ import annotations

from grader.exercises.ladder.bugs import BEYOND_THE_GRID, HALF, SUSPECTS, UNWRITTEN
from grader.exercises.ladder.cases import (
    CASES,
    FLOAT64_CASES,
    FREQUENCIES,
    PARAMETERS,
    SAMPLES,
    SIMULATOR_CASES,
    SIMULATOR_FLOAT64_CASES,
    TIMED,
    draw,
    ladder_case,
)  # fmt: skip
from grader.exercises.ladder.power import eager, lombscargle, oracle, power
from grader.exercises.ladder.rungs import numba_arrays, rung

__all__ = [
    "BEYOND_THE_GRID", "CASES", "FLOAT64_CASES", "FREQUENCIES", "HALF", "PARAMETERS", "SAMPLES", "SIMULATOR_CASES",
    "SIMULATOR_FLOAT64_CASES", "SUSPECTS", "TIMED", "UNWRITTEN", "draw", "eager", "ladder_case", "lombscargle",
    "numba_arrays", "oracle", "power", "rung",
]  # fmt: skip
