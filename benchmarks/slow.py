"""The corpus of slow work on a GPU: which cause is named, and whether its cure brings what was predicted."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.limits import Limit
from benchmarks.rows import Recorder
from grader.authoring.stubs import solution
from grader.bottleneck.cause import sentence
from grader.bottleneck.diagnosis import causes
from grader.bottleneck.evidence import Evidence
from grader.bottleneck.time_model import headroom
from grader.errors import GraderError
from grader.exercises import find
from grader.judge.service import Judge
from grader.verdict import Verdict
from tests.slow.corpus import FOLDER, Slow, corpus, read

__all__ = ["slow"]

_FILE_S = 20.0
_SIMULATORS = 6  # at once


def slow(recorder: Recorder) -> None:
    """Rows `slow`, one case per file: points for speed, the rank of its cause, the predicted and the reached gain."""
    limit, files = Limit(400), corpus()
    with ThreadPoolExecutor(_SIMULATORS) as pool:
        simulated = dict(zip([each.name for each in files], pool.map(_simulated, files), strict=True))
    twins: dict[str, Verdict] = {}
    with Judge("cuda") as judge:
        for each in files:
            if not limit.allows(_FILE_S):
                print(f"{each.name} and those after it were left out: no time is left.")
                return
            try:
                _record(recorder, judge, each, simulated[each.name], twins)
            except GraderError as error:
                print(f"{each.name}: {error}")


def _simulated(each: Slow) -> Evidence:
    with Judge("simulator") as judge:
        return judge.evidence(each.source, each.exercise)


def _record(recorder: Recorder, judge: Judge, each: Slow, simulated: Evidence, twins: dict[str, Verdict]) -> None:
    verdict = judge.grade(each.source, each.exercise)
    twin = each.twin or each.exercise
    if twin not in twins:
        source = read(Path(FOLDER, f"{each.twin}.py")).source if each.twin else solution(each.exercise)
        twins[twin] = judge.grade(source, each.exercise)
    on_gpu = judge.evidence(each.source, each.exercise)
    exercise, most = find(each.exercise), headroom(find(each.exercise), on_gpu)
    found = causes(exercise, each.source, on_gpu, simulated, headroom=most)
    kinds = [cause.kind for cause in found]
    gained = sum(gate.points for gate in verdict.gates)
    recorder.add("slow", each.name, "points_for_speed", "points", gained)
    recorder.add("slow", each.name, "rank_of_cause", "1", kinds.index(each.cause) + 1 if each.cause in kinds else 0)
    if (reached := _gain(verdict, twins[twin])) is not None:
        recorder.add("slow", each.name, "reached_gain", "1", reached)
    if found and found[0].at_most is not None:
        recorder.add("slow", each.name, "predicted_gain", "1", found[0].at_most)
    if most is not None:
        recorder.add("slow", each.name, "headroom", "1", most)
    print(f"    {each.cause} in {kinds}; in the report of check: {[cause.kind for cause in verdict.causes]}")
    print(*(f"    {sentence(cause)}" for cause in found), sep="\n", flush=True)


def _gain(before: Verdict, after: Verdict) -> float | None:
    """The geometric mean, over the timed cases, of how many times as fast the twin is; None if one was not timed."""
    own = [{t.case: t.median_us for t in verdict.timings if t.peer == "submission"} for verdict in (before, after)]
    if not own[0] or own[0].keys() != own[1].keys():
        return None
    return math.exp(sum(math.log(own[0][case] / own[1][case]) for case in own[0]) / len(own[0]))
