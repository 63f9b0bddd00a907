"""Where the seconds of a class's gradings go: by the stages that the judge tells of, the next loaded ahead."""

from __future__ import annotations

import time
from collections import defaultdict
from statistics import median

from benchmarks.classes import texts
from benchmarks.limits import Limit
from benchmarks.material import MIXED, Text
from benchmarks.rows import Recorder
from grader.judge.service import Judge

__all__ = ["by_stage", "stages"]

_STUDENTS = 12
_A_GRADING_S = 15.0


def stages(recorder: Recorder) -> None:
    """Rows `throughput/stages`, a case for each exercise and stage: `waiting` until the first, then by first words."""
    limit, handed_in = Limit(150), texts("cuda", _STUDENTS)
    queue = [handed_in[student][exercise] for exercise in MIXED for student in handed_in]
    found: dict[str, dict[str, list[float]]] = {}
    with Judge("cuda") as judge:
        for at, text in enumerate(queue):
            if not limit.allows(_A_GRADING_S):
                break
            took = by_stage(judge, text, queue[at:])
            if at and queue[at - 1].exercise == text.exercise:  # the first times the baselines alone, once for all
                for stage, seconds in took.items():
                    found.setdefault(text.exercise, defaultdict(list))[stage].append(seconds)
            print(text.exercise, text.name, {stage: round(seconds, 3) for stage, seconds in took.items()}, flush=True)
    for exercise, each in found.items():
        for stage, seconds in each.items():
            case = f"{exercise}, {stage}"
            recorder.add("throughput/stages", case, "seconds", "s", median(seconds), min(seconds), max(seconds))


def by_stage(judge: Judge, text: Text, queue: list[Text]) -> dict[str, float]:
    """Seconds of one grading by stage, and of all of it. `queue`: what will be asked for, this one first."""
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
