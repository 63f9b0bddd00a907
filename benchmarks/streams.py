"""How late a submission's own streams begin after the flag, on several hardware queues and on one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from typing import TYPE_CHECKING
from unittest import mock

from benchmarks.limits import Limit
from benchmarks.noise import Heard, listening
from benchmarks.rows import Recorder
from grader.exercise import Exercise
from grader.exercises import find
from grader.judge.process.pool import Loaded
from grader.judge.score import interval
from tests.honest.corpus import Honest, corpus

if TYPE_CHECKING:
    from grader.judge.bench import Bench

_MADE = re.compile(r"\bStream\(|(?<!torch\.)\bcuda\.stream\(|\bcudaStreamCreate")
_A_GRADING_S = 20.0


def on_streams(texts: Sequence[Honest]) -> list[Honest]:
    """Return the submissions that create a stream."""
    return [text for text in texts if _MADE.search(text.source)]


def by_queues(heard: Sequence[Heard], several: int) -> dict[str, list[float]]:
    """Return by metric the microseconds by which a submission's rounds exceed the calibration.

    The first `several` rounds, which include baselines', ran on several queues, the others on one.
    """
    parts = {"several_queues_us": heard[:several], "one_queue_us": heard[several:]}
    return {metric: [one.switch_us for one in part if one.peer == "submission"] for metric, part in parts.items()}


@contextmanager
def _moves(bench: Bench, heard: Sequence[Heard]) -> Iterator[list[int]]:
    """Collect how many rounds were heard before each worker with one queue."""
    found: list[int] = []
    take = bench.take

    def noted(source: str, exercise: Exercise, left_s: float, one_queue: bool) -> Loaded:
        if one_queue:
            found.append(len(heard))
        return take(source, exercise, left_s, one_queue)

    with mock.patch.object(bench, "take", noted):
        yield found


def streams(recorder: Recorder) -> None:
    """Rows `clock/streams`, one case per honest submission that creates a stream: its points, and its rounds' excess.

    The excess over the calibration includes warm-ups. It is recorded on several queues and, if the judge moves the
    submission to one queue, there as well. The clock that counted is printed.
    """
    from grader.judge.arbiter import Arbiter

    limit, arbiter = Limit(150), Arbiter("cuda")
    try:
        for text in on_streams(corpus()):
            if text.lacks or not limit.allows(_A_GRADING_S):
                continue
            with listening() as heard, _moves(arbiter.bench, heard) as moves:
                verdict = arbiter.grade(text.source, find(text.exercise))
            print(f"{text.name}: {verdict.points:g} points; {verdict.clock}", flush=True)
            recorder.add("clock/streams", text.name, "points", "1", verdict.points)
            for metric, values in by_queues(heard, (moves or [len(heard)])[0]).items():
                if len(values) > 1:
                    recorder.add("clock/streams", text.name, metric, "µs", *astuple(interval(values)))
    finally:
        arbiter.close()
