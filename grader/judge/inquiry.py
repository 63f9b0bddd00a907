"""Gather evidence about a right submission: watch calls on a few cases, and compile its kernels without a GPU."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Sequence
from math import prod
from typing import Any

from grader.exercise import Case, Exercise
from grader.judge.bench import Bench
from grader.judge.process.worker import Worker, WorkerFailed
from grader.verdict import Progress

_COMPILE_LIMIT_S = 20.0
_KERNELS_LIMIT_S = 20.0
_WATCHED = 2  # cases
_ENOUGH_S = 5.0  # on a GPU: after this, only the smallest and the largest case are watched
_MOST_OPERATIONS = 3_000_000
_MOST_IN_PYTHON = 300_000  # Numba's simulator runs each thread in Python
_MOST_ELEMENTS = 200_000  # of a case in the simulator, which takes long if each program has one element
_AT_LEAST_ONE_LARGE = 5  # times as many operations, if otherwise the smallest case alone would be watched
_ROWS, _LETTERS, _DEEP = 100, 200, 8  # of a claim: a submission may send megabytes


def nothing(bench: Bench) -> dict[str, Any]:
    """The evidence about a submission that does not run."""
    names = ("copy_gbps", "peak_tflops", "gpu", "multiprocessors", "driver", "torch")
    machine = {name: getattr(bench.machine, name) for name in names}
    return {"simulated": bench.device != "cuda", "runs": [], "codes": None, "kernels": [], **machine}


def gather(
    bench: Bench,
    source: str,
    exercise: Exercise,
    progress: Progress,
    upcoming: Sequence[tuple[str, Exercise]] = (),
    beside_gpu: bool = False,
) -> dict[str, Any]:
    """Return a worker's claims about the submission, for `Evidence.of_claims`, as far as it runs and is right.

    The submissions that are asked about next are loaded meanwhile. `beside_gpu` is as in `service.Judge.claims`.
    """
    found, watched = nothing(bench), _watched(bench, exercise)
    progress("importing the cell", 0, _WATCHED)
    if upcoming:
        bench.pool.expect([(source, exercise), *upcoming], functools.partial(_watched, bench))
    loaded = bench.take(source, exercise)
    try:
        if loaded.failure is not None:
            return found
        worker = loaded.worker
        worker.in_turn(exercise.wall_limit_s * bench.machine.slowness)
        with contextlib.suppress(WorkerFailed):
            worker.map(bench.buffers)
            begun = time.monotonic()
            for number, case in enumerate((*watched[:1], *reversed(watched[1:]))):
                if number == _WATCHED and time.monotonic() - begun > bench.machine.slowness * _ENOUGH_S:
                    break
                progress(f"watching {case.name}", min(number, _WATCHED - 1), _WATCHED)
                if _right(bench, worker, exercise, case):
                    with bench.pool.still() if bench.device == "cuda" else contextlib.nullcontext():
                        claim = worker.evidence("submission", _limit_s(bench, exercise), timed=True)
                    found["runs"].append({"case": case.name, "claim": trimmed(claim)})
                if found["simulated"] and found["codes"] is None:  # now, because a larger case may take too long
                    progress("compiling for a GPU", number, _WATCHED)
                    limit_s = bench.machine.slowness * _COMPILE_LIMIT_S
                    found["codes"] = trimmed(worker.codes(exercise.timed_cases[-1:], limit_s, triton=not beside_gpu))
                if not found["simulated"] and found["runs"] and number == min(1, len(watched) - 1):
                    progress("looking at the kernels that run", number, _WATCHED)
                    found["kernels"] = trimmed(worker.kernels("submission", _KERNELS_LIMIT_S, launches=True))
    finally:
        loaded.worker.close()
        names = [case.name for case in watched]
        found["runs"].sort(key=lambda run: names.index(run["case"]))
    return found


def trimmed(claim: Any, deep: int = _DEEP) -> Any:
    """Return a claim with long lists and texts cut off, and what is nested too deeply left out."""
    if isinstance(claim, str):
        return claim[:_LETTERS]
    if isinstance(claim, list):
        return [trimmed(each, deep - 1) for each in claim[:_ROWS]] if deep else []
    if isinstance(claim, dict):
        some = list(claim.items())[:_ROWS] if deep else []
        return {key[:_LETTERS]: trimmed(value, deep - 1) for key, value in some}
    return claim


def _watched(bench: Bench, exercise: Exercise) -> list[Case]:
    """A small and a large case; on a GPU the smallest that is plotted, and those that are timed."""
    if bench.device == "cuda":
        smallest = min(exercise.plot_cases or exercise.cases, key=_elements)
        return [smallest, *(case for case in exercise.timed_cases[-_WATCHED:] if bench.buffers.fits(case))]
    timed = {array.dtype for case in exercise.timed_cases for array in case.arrays}
    every = [case for case in exercise.simulator_cases if not case.measured and case.tries == 1]
    cases = [case for case in every if {array.dtype for array in case.arrays} <= timed] or every
    most = _MOST_IN_PYTHON if exercise.backend == "numba" else _MOST_OPERATIONS
    by_size = sorted(cases, key=_elements)
    few = [case for case in by_size if _elements(case) <= _MOST_ELEMENTS and exercise.operations(case) <= most]
    small = few or by_size[:1]
    if len(small) == 1:  # it may be one element, without any tiles: add the case with the most work per element
        large = [case for case in by_size if _elements(case) <= _MOST_ELEMENTS]
        large = [case for case in large if exercise.operations(case) <= _AT_LEAST_ONE_LARGE * most]
        small += sorted(large, key=lambda case: exercise.operations(case) / _elements(case))[-1:]
        return list(dict.fromkeys(small))
    return [small[len(small) // 2], small[-1]] if len(small) > 2 else small


def _elements(case: Case) -> int:
    return sum(prod(array.shape) for array in case.arrays)


def _right(bench: Bench, worker: Worker, exercise: Exercise, case: Case) -> bool:
    """Run the case, and return whether its answer is right."""
    buffers = bench.buffers
    layout = buffers.lay(case)
    buffers.fill(layout, exercise.draw)
    buffers.poison(layout)
    worker.plan(layout)
    build_s = bench.machine.slowness * exercise.time_limit_s
    worker.round("submission", buffers, _limit_s(bench, exercise), exercise.head_start, build_s)
    return buffers.check(layout, exercise) is None


def _limit_s(bench: Bench, exercise: Exercise) -> float:
    return bench.machine.slowness * exercise.run_limit_s(bench.device)
