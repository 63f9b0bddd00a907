"""The judge's clock against CUDA events, its variation between gradings, and two submissions 3 % apart."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import astuple
from pathlib import Path
from statistics import fmean, median, stdev
from typing import TYPE_CHECKING, Any

from benchmarks.limits import Fault, Limit, folder, keep
from benchmarks.material import honest, unique
from benchmarks.pairs import imported, pairs
from benchmarks.rows import Recorder
from grader.exercise import Array, Baseline, Budget, Case, Exercise
from grader.judge.score import Interval, interval

if TYPE_CHECKING:
    from grader.judge.bench import Bench
    from grader.judge.process.worker import Worker

_DURATIONS_US = (10, 22, 47, 100, 220, 470, 1000, 2200, 4700, 10_000, 22_000, 50_000)
_HELD_FROM_US = 100
_ALLOWED_PERCENT = 1.0
_TRIALS = 15
_LARGEST_ELEMENTS = 1 << 26  # 256 MiB: longer kernels pass over the same memory several times
_REPEATS = 12

_SOURCE = """
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, blocks, BLOCK: tl.constexpr):
    at = (tl.program_id(0) % blocks) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=mask), mask=mask)


def passes(x, count, out):
    n = x.numel()
    blocks = triton.cdiv(n, 2048)
    kernel[(blocks * count.numel(),)](x, out, n, blocks, BLOCK=2048)
"""


def scaled_case(duration_us: float, copy_gbps: float) -> Case:
    """Return a case of copies that take about this long: up to 256 MiB, then more passes (the length of `count`)."""
    elements = duration_us * copy_gbps * 1e3 / 8
    passes = max(1, round(elements / _LARGEST_ELEMENTS))
    size = min(_LARGEST_ELEMENTS, int(elements) & ~511 or 512)
    arrays = (Array("x", (size,)), Array("count", (passes,), "uint8"), Array("out", (size,), role="out"))
    return Case(f"{duration_us:g} µs", arrays)


def _copies(x: Any, count: Any, out: Any) -> None:
    for _ in range(count.numel()):
        out.copy_(x)


def _scaled(cases: Sequence[Case]) -> Exercise:
    return Exercise(
        id="passes", title="", chapter="", notebook="", entry="passes", parameters=("x", "count", "out"),
        backend="triton", cases=tuple(cases), simulator_cases=(), timed_cases=tuple(cases), plot_cases=(),
        oracle=lambda inputs: inputs["x"], budget=Budget(0.0, 0.0), correctness_points=0, wall_limit_s=1e6,
        bytes_moved=lambda case: 2 * 4 * case.arrays[0].shape[0] * case.arrays[1].shape[0], operations=lambda case: 0,
        baselines=(Baseline("copies", "torch", _copies),),
    )  # fmt: skip


def agree(bench: Bench, case: Case, exercise: Exercise, worker: Worker, trials: int,
          alone: Callable[[int], float]) -> dict[str, Interval]:  # fmt: skip
    """Run trials of one case as the judge does, in a worker whose CUDA events can be trusted.

    Return `launches`, `events_us` (a launch's time by the events), and these in percent:

    - `round_vs_events`: the arbiter's time of a round, without its calibrated overhead, compared with the events.
    - `arbiter_vs_events`: the same for the round that a submission's events must agree with.
    - `counted_vs_events`: the same for the time that counts.
    - `counted_vs_another_process`: the time that counts, compared with `alone(launches)`, seconds per launch by
      events in another process.
    - `rounds_by_events`: the share of rounds in which the events counted.
    """
    from grader.judge.timing.clock_choice import counted, held_against
    from grader.judge.timing.timer import Timer

    timer = Timer(bench, exercise, lambda *_: None)
    timer.one_queue = True  # it uses one stream, so a worker with one queue would not help
    timer.gated = False  # keeps the durations as given
    timer.time([case], exercise.baselines, trials // 2, worker)
    launches = timer.launches[case.name]
    elsewhere_s = median([alone(launches) for _ in range(trials + 1)][1:])  # the first one compiles
    timer.time([case], exercise.baselines, trials - trials // 2, worker)
    readings = timer.readings[case.name]["submission"]
    found: dict[str, list[float]] = {}
    counts = counted(readings)
    for one, count in zip(readings, counts, strict=True):
        if one.events_s is None:
            raise SystemExit(f"{case.name}: the worker reports no event time")
        for name, value in (
            ("events_us", 1e6 * one.events_s),
            ("round_vs_events", _percent(one.arbiter_s, one.events_s)),
            ("counted_vs_events", _percent(count.seconds, one.events_s)),
            ("counted_vs_another_process", _percent(count.seconds, elsewhere_s)),
        ):
            found.setdefault(name, []).append(value)
    by_events = 100 * sum(count.clock == "events" for count in counts) / len(counts)
    held = _percent(held_against(readings), median(one.events_s or 0.0 for one in readings))
    fixed = {"launches": float(launches), "rounds_by_events": by_events, "arbiter_vs_events": held}
    return {name: Interval(value, value, value) for name, value in fixed.items()} | {
        name: interval(values) for name, values in found.items()
    }


def _percent(value: float, truth: float) -> float:
    return 100 * (value / truth - 1)


def agreement(recorder: Recorder) -> None:
    """Rows `clock/agreement`, one case per duration.

    Raises:
        Fault: a median from 100 µs on is off by more than 1 %.
    """
    from grader.judge.bench import Bench

    limit, state = Limit(150), folder("clock") / "agreement.jsonl"
    cases = [scaled_case(duration, recorder.machine.copy_gbps) for duration in _DURATIONS_US]
    exercise, faults = _scaled(cases), []
    bench = Bench("cuda")
    try:
        bench.clock_for(bench.baseline_worker(exercise, exercise.baselines))  # before a submission is alive
        loaded = bench.take(_SOURCE, exercise)
        if loaded.failure is not None:
            raise SystemExit(f"The timed kernel does not load: {loaded.failure}")
        worker = loaded.worker
        try:
            worker.in_turn(1e6)
            worker.map(bench.buffers)
            with tempfile.TemporaryDirectory() as scratch:
                function = imported(_SOURCE, "passes", Path(scratch))
                for duration, case in zip(_DURATIONS_US, cases, strict=True):
                    if not limit.allows(10):
                        faults.append(f"{case.name} and longer: not measured within the limit")
                        break
                    found = agree(bench, case, exercise, worker, _TRIALS, _alone(function, case))
                    keep(state, {"case": case.name} | {name: astuple(value) for name, value in found.items()})
                    faults += _record_agreement(recorder, case.name, duration, found)
        finally:
            worker.close()
    finally:
        bench.close()
    if faults:
        raise Fault("\n".join(["clock/agreement:", *faults]))


def _record_agreement(recorder: Recorder, case: str, duration: float, found: dict[str, Interval]) -> list[str]:
    for metric, value in found.items():
        unit = {"launches": "1", "events_us": "µs"}.get(metric, "%")
        recorder.add("clock/agreement", case, metric, unit, *astuple(value))
    off = {name: found[f"{name}_vs_events"].middle for name in ("arbiter", "counted")}
    return [
        f"{case}: {name} is off by {percent:+.2f} %"
        for name, percent in off.items()
        if duration >= _HELD_FROM_US and abs(percent) > _ALLOWED_PERCENT
    ]


def _alone(function: Callable[..., None], case: Case) -> Callable[[int], float]:
    """Return a function that times the same launches in this process by CUDA events, on a round's number of buffers."""
    import torch

    def seconds(launches: int) -> float:
        if not buffers:
            for _ in range(launches):
                kinds = [(array.shape, getattr(torch, array.dtype)) for array in case.arrays]
                buffers.append(tuple(torch.zeros(shape, dtype=dtype, device="cuda") for shape, dtype in kinds))
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        start.record()
        for arguments in buffers:
            function(*arguments)
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) / 1e3 / launches

    buffers: list[tuple[Any, ...]] = []
    return seconds


def repeats(recorder: Recorder) -> None:
    """Rows `clock/repeats`: the spread, from grading to grading, of a submission's times and ratios.

    Raises:
        Fault: a coefficient of variation is above 1 %.
    """
    from grader.judge.service import Judge

    limit, state, faults = Limit(150), folder("clock") / "repeats.jsonl", []
    with Judge("cuda") as judge:
        for exercise in ("vector_add", "softmax"):
            texts = [unique(honest(exercise)[0], f"grading {number}").source for number in range(_REPEATS + 1)]
            judge.expect([(text, exercise) for text in texts])
            found: dict[str, list[float]] = {}
            for number, text in enumerate(texts):
                if not limit.allows(5):
                    break
                verdict = judge.grade(text, exercise)
                if verdict.points != verdict.max_points:
                    raise SystemExit(f"The reference solution of {exercise} got {verdict.points} points: {verdict}")
                if not number:
                    continue  # the first grading of a session starts the baselines
                for timing in verdict.timings:
                    if timing.peer == "submission":
                        found.setdefault(f"{timing.case}, time", []).append(timing.median_us)
                for gate in verdict.gates:
                    found.setdefault(f"ratio to {gate.baseline}", []).append(gate.ratio or 0.0)
                keep(state, {"exercise": exercise} | {name: values[-1] for name, values in found.items()})
            for name, values in found.items():
                spread = 100 * stdev(values) / fmean(values)
                recorder.add("clock/repeats", f"{exercise}, {name}", f"cv_of_{len(values)}", "%", spread)
                if spread > _ALLOWED_PERCENT:
                    faults.append(f"{exercise}, {name}: {spread:.2f} % from grading to grading")
    if faults:
        raise Fault("\n".join(["clock/repeats:", *faults]))


def clock(recorder: Recorder) -> None:
    """Run all three parts, even if one has a fault."""
    faults = []
    for part in (agreement, repeats, pairs):
        try:
            part(recorder)
        except Fault as fault:
            faults.append(str(fault))
    if faults:
        raise Fault("\n".join(faults))
