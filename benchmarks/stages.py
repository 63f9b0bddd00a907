"""Where the seconds of a class's gradings go: by stage, and to the profile of the kernels."""

from __future__ import annotations

import time
from collections import defaultdict
from statistics import median

from benchmarks.classes import texts
from benchmarks.limits import Limit
from benchmarks.material import MIXED, Text
from benchmarks.rows import Recorder
from grader.judge.service import Judge

_STUDENTS = 12
_A_GRADING_S = 15.0
_LOOKED_AT = 8  # students, with three exercises each


def stages(recorder: Recorder) -> None:
    """Rows `throughput/stages`, one case per exercise and stage: `waiting`, then first words of progress messages."""
    limit, handed_in = Limit(150), texts("cuda", _STUDENTS, MIXED)
    queue = [handed_in[student][exercise] for exercise in MIXED for student in handed_in]
    found: dict[str, dict[str, list[float]]] = {}
    with Judge("cuda") as judge:
        for at, text in enumerate(queue):
            if not limit.allows(_A_GRADING_S):
                break
            took = by_stage(judge, text, queue[at:])
            if at and queue[at - 1].exercise == text.exercise:  # the first grading also times the baselines alone
                for stage, seconds in took.items():
                    found.setdefault(text.exercise, defaultdict(list))[stage].append(seconds)
            print(text.exercise, text.name, {stage: round(seconds, 3) for stage, seconds in took.items()}, flush=True)
    for exercise, each in found.items():
        for stage, seconds in each.items():
            case = f"{exercise}, {stage}"
            recorder.add("throughput/stages", case, "seconds", "s", median(seconds), min(seconds), max(seconds))


def kernel_looks(recorder: Recorder) -> None:
    """Rows `throughput/kernels`: seconds per grading of the same class without and with the profile, twice each.

    The first grading of a pass waits for the judge to start, so it is left out.
    """
    handed_in = texts("cuda", _LOOKED_AT, MIXED)
    queue = [handed_in[student][exercise] for exercise in MIXED for student in handed_in]
    found: dict[bool, list[float]] = {False: [], True: []}
    for look in (False, True, True, False):
        with Judge("cuda") as judge:
            judge.expect([(text.source, text.exercise) for text in queue])
            judge.grade(queue[0].source, queue[0].exercise, kernels=look)
            begun = time.perf_counter()
            for text in queue[1:]:
                judge.grade(text.source, text.exercise, kernels=look)
            found[look].append((time.perf_counter() - begun) / len(queue[1:]))
            print("with" if look else "without", "kernels:", round(found[look][-1], 3), "s per grading", flush=True)
    for look, each in found.items():
        case = f"{len(queue) - 1} gradings, {'with' if look else 'without'} the kernels"
        recorder.add("throughput/kernels", case, "seconds_each", "s", median(each), min(each), max(each))


def by_stage(judge: Judge, text: Text, queue: list[Text]) -> dict[str, float]:
    """Return the seconds of one grading, by stage and in total. `queue`: the next gradings, this one first."""
    took: dict[str, float] = defaultdict(float)
    begun = since = time.perf_counter()
    stage = "waiting"

    def note(following: str, done: int, total: int) -> None:
        nonlocal stage, since
        now = time.perf_counter()
        took[stage] += now - since
        stage, since = following.partition(" ")[0], now

    judge.expect([(each.source, each.exercise) for each in queue])
    judge.grade(text.source, text.exercise, progress=note)
    note("", 0, 0)
    return {**took, "all": time.perf_counter() - begun}
