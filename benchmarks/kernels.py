"""The reference solutions against their baselines, other packages and a copy of as many bytes, on the plot cases.

Some exercises also have a faster solution that a reader need not write, or slower ones on the way to the reference, all
in `tests/mistakes`. Their rows, such as `<exercise>/fastest`, are from the same run.
"""

from __future__ import annotations

import contextlib
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import astuple
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.limits import Fault
from benchmarks.peers import peer_calls
from benchmarks.rows import Recorder
from benchmarks.timing import HEAD_START_CYCLES, in_turn
from grader.authoring.stubs import solution
from grader.exercise import Case, Exercise
from grader.exercises import EXERCISES
from grader.explore.hopper.language_views import load_file
from grader.explore.profiling.counted_call import inputs_of
from grader.judge.checking.compare import within
from grader.judge.score import geometric_mean, interval
from grader.worker.toolchain import nvcc

_LAUNCHES = 20  # in a row, if a call's host time counts: the GPU waits for a slower host
FASTEST = "fastest"
_STEPS = {"matmul_tiled": ("naive", "one_element_per_thread", "column_in_registers")}  # on the way to the reference
_CORPUS = Path(__file__).parents[1] / "tests" / "mistakes"
SOFTMAX_SIZES = (256, 781, 1024, 4096, 8192, 16384, 32768)


def load(exercise: Exercise, folder: Path, change: Callable[[str], str] = str) -> Callable[..., None]:
    """Import the reference solution's function from a file, which Triton reads again. `change` edits its text first."""
    return _imported(exercise, folder / f"{exercise.id}_reference.py", change(solution(exercise.id)))


def _imported(exercise: Exercise, path: Path, source: str) -> Callable[..., None]:
    path.write_text(source, encoding="utf-8")
    return getattr(load_file(path), exercise.entry)  # type: ignore[no-any-return]


def kernels(recorder: Recorder, only: str = "") -> None:
    """Measure every timed exercise, or `only` the one with this id. Add rows for each peer and each ratio.

    Raises:
        Fault: some exercises failed; the others were measured.
    """
    nvcc.offer(simulated=False)  # a reference solution may call it
    failed = []
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # some write files into the current folder
        for exercise in (each for each in EXERCISES.values() if each.gates and only in ("", each.id)):
            try:
                _exercise(recorder, exercise, Path(folder))
            except (Exception, SystemExit) as error:
                traceback.print_exc()
                failed.append(f"{exercise.id} ({type(error).__name__}: {error})")
    if failed:
        raise Fault("kernels: rows are missing for these exercises: " + "; ".join(failed))


def cases_of(exercise: Exercise) -> dict[str, Case]:
    """Return the exercise's plot cases and gate cases by name."""
    return {case.name: case for case in (*exercise.plot_cases, *exercise.timed_cases)}


def _exercise(recorder: Recorder, exercise: Exercise, folder: Path) -> None:
    functions = {"": load(exercise, folder)}
    for name in (FASTEST, *_STEPS.get(exercise.id, ())):
        if (path := _CORPUS / exercise.id / f"right_{name}.py").exists():
            functions[name] = _imported(exercise, folder / f"{exercise.id}_{name}.py", path.read_text("utf-8"))
    times = {name: _case(recorder, exercise, case, functions) for name, case in cases_of(exercise).items()}
    if exercise.id == "softmax":
        chosen = [times[case.name] for case in exercise.plot_cases if case.arrays[0].shape[1] in SOFTMAX_SIZES]
        for ours in (*functions, "copy"):  # the copy is the limit of a softmax that moves each byte once
            for peer in ("torch", "eager", "compile"):
                _overall(recorder, [_ratios(case[peer], case[ours]) for case in chosen], ours, peer)


def _case(recorder: Recorder, exercise: Exercise, case: Case, functions: dict[str, Callable[..., None]]
          ) -> dict[str, list[float]]:  # fmt: skip
    """Measure one case. Return the times of each call: ours, and those of each peer."""
    tensors = inputs_of(exercise, case, machine=recorder.machine)
    moved = exercise.bytes_moved(case)
    read, written = (torch.empty(moved // 2, dtype=torch.uint8, device="cuda") for _ in range(2))
    calls: dict[str, Callable[[], Any]] = {
        name: call_of(function, exercise.harness, tensors) for name, function in functions.items()
    }
    for baseline in exercise.baselines:
        calls[baseline.id] = call_of(baseline.function, baseline.harness or exercise.harness, tensors)
    calls |= peer_calls(exercise.id, tensors, partial(_is_right, exercise, case, tensors))
    calls["copy"] = partial(written.copy_, read)
    times = in_turn(calls, launches=_LAUNCHES) if exercise.of_the_host else in_turn(calls, HEAD_START_CYCLES)
    for name in functions:
        must_be_right(exercise, case, calls[name], tensors)
    for peer, samples in times.items():
        bench = _bench(exercise.id, peer)
        time, low, high = astuple(interval(samples))
        recorder.add(bench, case.name, "median_us", "µs", time, low, high)
        gbps = [moved / value / 1e3 for value in (time, high, low)]
        recorder.add(bench, case.name, "bandwidth_gbps", "GB/s", *gbps)
    for ours in functions:
        for peer in times.keys() - {"", ours}:
            metric = "share_of_copy" if peer == "copy" else f"ratio_vs_{peer}"
            ratio = interval(_ratios(times[peer], times[ours]))
            recorder.add(_bench(exercise.id, ours), case.name, metric, "1", *astuple(ratio))
    shares = [moved / value / 1e3 / recorder.machine.copy_gbps for value in times[""]]
    recorder.add(exercise.id, case.name, "share_of_large_copy", "1", *astuple(interval(shares)))
    return times


def _bench(exercise: str, peer: str) -> str:
    return f"{exercise}/{peer}" if peer else exercise


def _ratios(theirs: list[float], ours: list[float]) -> list[float]:
    """Return how many times as fast ours are, call by call."""
    return [their / our for their, our in zip(theirs, ours, strict=True)]


def call_of(function: Callable[..., Any], harness: Callable[..., None] | None, tensors: dict[str, Any]
            ) -> Callable[[], Any]:  # fmt: skip
    """Return a call of the function on these tensors, through the exercise's harness if it has one."""
    return partial(harness, function, *tensors.values()) if harness else partial(function, *tensors.values())


def must_be_right(exercise: Exercise, case: Case, call: Callable[[], Any], tensors: dict[str, Any]) -> None:
    """Call once, and compare `tensors["out"]` with the oracle.

    Raises:
        SystemExit: the output is wrong.
    """
    out = tensors["out"]
    out.fill_(float("nan") if out.is_floating_point() else 0)
    call()
    if not _is_right(exercise, case, tensors):
        raise SystemExit(f"The reference solution of {exercise.id} is wrong for {case.name}. No figure is written.")


def _is_right(exercise: Exercise, case: Case, tensors: dict[str, Any]) -> bool:
    expected = exercise.oracle({array.name: tensors[array.name].double() for array in case.inputs})
    return bool(within(tensors["out"], expected, case.budget or exercise.budget).all())


def _overall(recorder: Recorder, per_size: list[list[float]], ours: str, peer: str) -> None:
    overall = [geometric_mean(call) for call in zip(*per_size, strict=True)]
    case, bench = f"geometric mean of {len(per_size)} sizes", _bench("softmax", ours)
    recorder.add(bench, case, f"ratio_vs_{peer}", "1", *astuple(interval(overall)))
