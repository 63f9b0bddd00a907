"""How long the output probe takes, by its number of elements: the reason for the value of `output_probe.LOOKS`."""

from __future__ import annotations

from dataclasses import astuple
from statistics import median
from unittest import mock

from benchmarks.limits import Limit
from benchmarks.rows import Recorder
from grader.exercises import find
from grader.judge.process.worker import Round
from grader.judge.score import interval
from grader.judge.timing import output_probe
from grader.judge.timing.clock import launches_for

_EXERCISES = ("vector_add", "softmax", "unblock")  # few launches, some, many
_ELEMENTS = tuple(int(factor * output_probe.LOOKS) for factor in (1 / 4, 1, 4, 16, 64))
_TURNS = 40
_AN_EXERCISE_S = 40.0


def looks(recorder: Recorder) -> None:
    """Rows `clock/looks`, one case per exercise and number of elements: the probe's copies and microseconds.

    The probe follows rounds of the first baseline; the numbers of elements take turns.
    """
    from grader.judge.bench import Bench
    from grader.judge.timing.timer import Timer

    limit, bench = Limit(150), Bench("cuda")
    try:
        for exercise in map(find, _EXERCISES):
            if not limit.allows(_AN_EXERCISE_S):
                break
            Timer(bench, exercise, lambda *_: None).know_baselines()
            case, baseline = exercise.timed_cases[0], exercise.baselines[0]
            case = case.times(bench.sizes.scale(exercise, case, bench.machine, bench.buffers))
            layout = bench.buffers.lay(case, launches_for(bench.buffers, bench.machine, exercise, case))
            worker = bench.baseline_worker(exercise, [baseline])
            bench.buffers.fill(layout, exercise.draw)
            worker.plan(layout)
            found: dict[int, list[Round]] = {elements: [] for elements in _ELEMENTS}
            with bench.pool.still():
                for _ in range(_TURNS):
                    for elements in _ELEMENTS:
                        bench.buffers.poison(layout)
                        with mock.patch.object(output_probe, "LOOKS", elements):
                            one = worker.round(f"{exercise.id}:{baseline.id}", bench.buffers, 30.0, exercise.head_start)
                        found[elements].append(one)
            for elements, rounds in found.items():
                label = f"{exercise.id}, {len(layout.launches)} launches, {elements} elements"
                recorder.add("clock/looks", label, "copies", "1", median(one.probe.copies for one in rounds))
                took = interval([1e6 * one.probe_s for one in rounds])
                recorder.add("clock/looks", label, "look_us", "µs", *astuple(took))
    finally:
        bench.close()
