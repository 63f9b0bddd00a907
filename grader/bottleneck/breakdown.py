"""Divide the time or the bytes of a call into parts, and find the lines of the cell that move the bytes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from grader.bottleneck.evidence import SECTOR_BYTES, WARP, Evidence, Run
from grader.bottleneck.time_model import byte_parts, moved_again, time_parts
from grader.exercise import Exercise
from grader.verdict import Breakdown, Environment, LineShare, Timing
from grader.words import LINE_CHARACTERS

__all__ = ["breakdown", "timed"]

_LEAST = 0.01  # of the bytes: a line that moves fewer is not shown
_LINES = 8  # that are shown


def breakdown(exercise: Exercise, source: str, *gathered: Evidence) -> Breakdown:
    """Divide the time if a GPU measured it, and otherwise the bytes that the simulator counted, which tells the lines.

    All of it is bounded: at most 8 lines, of at most `LINE_CHARACTERS` characters.
    """
    simulated = next((each for each in gathered if each.simulated and each.runs), None)
    run = simulated.largest_row_major if simulated is not None else None
    on_gpu = next((each for each in gathered if not each.simulated and each.runs), None)
    lines = _lines(source, run) if run is not None else ()
    if on_gpu is not None and (parts := time_parts(exercise, on_gpu, moved_again(exercise, run))):
        return Breakdown("time", parts, lines)
    return Breakdown(
        "bytes between memory and the kernels", byte_parts(exercise, run) if run is not None else (), lines
    )


def timed(exercise: Exercise, timings: Iterable[Timing], environment: Environment) -> Evidence:
    """The judge's own times of a submission as evidence."""
    cases = {case.name: case for case in exercise.timed_cases}
    own = [each for each in timings if each.peer == "submission" and each.case in cases]
    return Evidence(
        simulated=False,
        runs=tuple(Run(cases[each.case].times(each.scale), us=each.median_us) for each in own),
        copy_gbps=environment.copy_gbps or 0.0,
        peak_tflops=environment.peak_tflops or 0.0,
    )


def _lines(source: str, run: Run) -> tuple[LineShare, ...]:
    """The lines that move bytes, the most first: by all programs, or by one warp of each launch in CUDA C++."""
    moved: dict[int, float] = defaultdict(float)
    for launch in run.launches:
        for each in launch.accesses:
            moved[each.line or 0] += max(each.bytes, each.fetched)
        for warp in launch.warps:
            if warp.name == "global":
                moved[warp.line or 0] += (
                    SECTOR_BYTES * warp.units * warp.count * launch.programs * launch.threads / WARP
                )
    for operation in run.operations:
        moved[operation.line or 0] += operation.bytes if operation.line else 0
    total, text = sum(moved.values()), source.split("\n")
    known = [(line, size) for line, size in moved.items() if 0 < line <= len(text) and size >= _LEAST * total]
    by_size = sorted(known, key=lambda each: -each[1])[:_LINES]
    return tuple(
        LineShare(line, text[line - 1].strip()[:LINE_CHARACTERS], size / total) for line, size in by_size if total
    )
