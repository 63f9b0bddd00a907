"""Seconds from an edit to its result: `check` in a warm session, each time on a new source."""

from __future__ import annotations

import time
from statistics import median

from benchmarks.rows import Recorder
from grader.authoring.stubs import solution
from grader.exercises import find
from grader.judge.service import Judge

_EDITS = 7
_TIMED = ("vector_add", "softmax", "square_matrix")  # one of each kind: memory-bound, several sizes, a build
_PAUSE_S = 6.0  # less than a learner needs to read and type; meanwhile the next worker imports


def loop(recorder: Recorder) -> None:
    """Rows `check/<exercise>`: whole checks with timing and gates, and the first one of a session."""
    for exercise in map(find, _TIMED):
        with Judge() as judge:
            seconds = []
            for edit in range(_EDITS + 1):
                begun = time.perf_counter()
                verdict = judge.grade(f"{solution(exercise.id)}\n# edit {edit}\n", exercise.id)
                seconds.append(time.perf_counter() - begun)
                if verdict.status != "passed":
                    raise SystemExit(f"The reference solution of {exercise.id} got {verdict.points} points: {verdict}")
                time.sleep(_PAUSE_S)
        first, *warm = seconds
        recorder.add(f"check/{exercise.id}", "first of a session", "seconds", "s", first)
        recorder.add(f"check/{exercise.id}", "warm", "seconds", "s", median(warm), min(warm), max(warm))
