"""One rung of the ladder as an exercise, and how its arrays come to the entry point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from grader.exercise import Baseline, Budget, Case, Exercise, Gate, Rules, Suspect
from grader.exercises.ladder.bugs import BEYOND_THE_GRID, SUSPECTS
from grader.exercises.ladder.cases import (
    ABSOLUTE,
    CASES,
    FLOAT64_CASES,
    PARAMETERS,
    PLOT,
    RELATIVE,
    SAMPLES,
    SIMULATOR_CASES,
    SIMULATOR_FLOAT64_CASES,
    TIMED,
    draw,
)  # fmt: skip
from grader.exercises.ladder.power import oracle

__all__ = ["numba_arrays", "rung"]

_OPERATIONS = 13  # a sample and frequency: the phase, its sine and cosine, two sums of products and three of squares


def numba_arrays(entry: Any, t: Any, y: Any, freqs: Any, out: Any) -> None:
    """The harness of the rungs in Numba: the arrays come to the entry point as Numba's device arrays, uncopied."""
    from grader.worker.numba_arrays import device_arrays

    entry(*device_arrays(t, y, freqs, out))


_HARNESSES: dict[str, Callable[..., None] | None] = {"numba": numba_arrays}


def rung(
    exercise_id: str,
    title: str,
    notebook: str,
    backend: Literal["torch", "numba", "cupy"],
    *,
    baselines: tuple[Baseline, ...],
    gates: tuple[Gate, ...],
    hints: tuple[str, ...],
    correctness_points: float = 2,
    float64: bool = True,
    harness: Callable[..., None] | None = None,
    suspects: tuple[Suspect, ...] = (),
    cases: tuple[Case, ...] = CASES,
    simulator_cases: tuple[Case, ...] = SIMULATOR_CASES,
    library: tuple[str, ...] = (),
    operations: Callable[[Case], int] | None = None,
    time_limit_s: float = 60.0,
) -> Exercise:
    """One rung as an exercise: its entry point has the name of the exercise.

    Args:
        baselines: the peers of its gates; each function takes what the entry point takes.
        float64: whether the arrays may be of float64 as well.
        harness: by default the one that suits the backend.
        library: operations of torch that would do the work.
        suspects: bugs of this rung alone, asked before those that all share.
        operations: what is needed at least, where that is less than a sine and a cosine a sample and frequency.
    """
    return Exercise(
        id=exercise_id,
        title=title,
        chapter="04_numba_cupy",
        notebook=notebook,
        entry=exercise_id,
        parameters=PARAMETERS,
        backend=backend,
        cases=cases + (FLOAT64_CASES if float64 else ()),
        simulator_cases=simulator_cases + (SIMULATOR_FLOAT64_CASES if float64 else ()),
        timed_cases=TIMED if gates else (),
        plot_cases=PLOT,
        oracle=oracle,
        budget=Budget(ABSOLUTE["float32"], RELATIVE["float32"]),  # each case has its own
        draw=draw,
        bytes_moved=_bytes_moved,
        operations=operations or _operations,
        limited_by="arithmetic",
        work=_pairs,
        work_unit="pairs",
        correctness_points=correctness_points,
        baselines=baselines,
        gates=gates,
        suspects=suspects + (BEYOND_THE_GRID if backend != "torch" else ()) + SUSPECTS,
        rules=Rules(library),
        harness=harness or _HARNESSES.get(backend),
        hints=hints,
        launches=4,  # by the bytes it would be hundreds
        plot_axis=f"frequencies ({SAMPLES:,} samples, float32)",
        plot_value=lambda case: case.arrays[-1].shape[0],
        time_limit_s=time_limit_s,
    )


def _bytes_moved(case: Case) -> int:
    item = 8 if case.arrays[0].dtype == "float64" else 4
    return item * 2 * (case.arrays[0].shape[0] + case.arrays[-1].shape[0])


def _pairs(case: Case) -> int:
    """Of a sample and a frequency."""
    return case.arrays[0].shape[0] * case.arrays[-1].shape[0]


def _operations(case: Case) -> int:
    return _OPERATIONS * _pairs(case)
