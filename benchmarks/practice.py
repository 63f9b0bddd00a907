"""Each reference solution by both clocks, in turn on one GPU: the points, and how far the ratios differ.

The practice clock is the one for machines whose processes cannot share a GPU's memory. `PRACTICE_OF=widen,ls_open`
grades only these exercises.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from statistics import median
from unittest import mock

from benchmarks.limits import Fault, Limit
from benchmarks.rows import Recorder
from grader.authoring.stubs import solution
from grader.exercises import EXERCISES
from grader.judge.service import Judge
from grader.verdict import Verdict

_LIMIT_S = 560.0
_LONGEST_S = 60.0  # an exercise is not begun with less time left
_ALLOWED_PERCENT = 3.0


def practice(recorder: Recorder) -> None:
    """Rows `practice/EXERCISE`: points, and each gate's ratio by the practice clock, in percent of the judge's own.

    Raises:
        Fault: a reference earns less by one of the clocks, or the median ratio differs by more than 3 %.
    """
    limit, faults, differences = Limit(_LIMIT_S), [], []
    chosen = [name for name in os.environ.get("PRACTICE_OF", "").split(",") if name] or list(EXERCISES)
    with _judge("auto") as own, _judge("host") as by_practice:
        for name in chosen:
            if not limit.allows(_LONGEST_S):
                print(f"{name} and later exercises were not begun: no time is left.", flush=True)
                break
            verdicts = {"judge's clock": own.grade(solution(name), name),
                        "practice clock": by_practice.grade(solution(name), name)}  # fmt: skip
            for clock, verdict in verdicts.items():
                recorder.add(f"practice/{name}", clock, "points", "points", verdict.points)
                recorder.add(f"practice/{name}", clock, "grading", "s", verdict.seconds)
                if verdict.timings:
                    scale = max(timing.scale for timing in verdict.timings)
                    recorder.add(f"practice/{name}", clock, "times_as_large", "1", scale)
                if verdict.points != (most := EXERCISES[name].max_points):
                    faults.append(f"{name} has {verdict.points:g} of {most:g} points by the {clock}")
                    print(verdict, flush=True)
            for label, percent in _differences(*verdicts.values()).items():
                recorder.add(f"practice/{name}", label, "ratio_difference", "%", percent)
                differences.append(abs(percent))
    if differences and median(differences) > _ALLOWED_PERCENT:
        faults.append(f"the ratios differ by {median(differences):.1f} % (median); {_ALLOWED_PERCENT:g} % are allowed")
    if faults:
        raise Fault("practice: " + "; ".join(faults))


@contextlib.contextmanager
def _judge(memory: str) -> Iterator[Judge]:
    """A judge that exchanges data in this way. It asks only when its first grading starts, so one grades at once."""
    with mock.patch.dict(os.environ, GRADER_MEMORY=memory), Judge("cuda") as judge:
        judge.grade(solution("vector_add"), "vector_add", timed=False)
        yield judge


def _differences(own: Verdict, by_practice: Verdict) -> dict[str, float]:
    ratios = {gate.label: gate.ratio for gate in own.gates}
    return {
        gate.label: 100 * (gate.ratio / ratio - 1)
        for gate in by_practice.gates
        if gate.ratio and (ratio := ratios.get(gate.label))
    }
