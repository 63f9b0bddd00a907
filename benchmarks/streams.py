"""Work on streams of its own behind the GPU's wait for the flag: how late it begins, and what the judge makes of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import astuple

from benchmarks.limits import Limit
from benchmarks.noise import Heard, listening
from benchmarks.rows import Recorder
from grader.exercises import find
from grader.judge.statistics import interval
from tests.honest.corpus import Honest, corpus

__all__ = ["early_and_late", "on_streams", "streams"]

_MADE = re.compile(r"\bStream\(|(?<!torch\.)\bcuda\.stream\(|\bcudaStreamCreate")
_HEAD_START = 3  # rounds of the first case, a warm-up among them: then the judge decides
_A_GRADING_S = 20.0


def on_streams(texts: Sequence[Honest]) -> list[Honest]:
    """Those that make a stream."""
    return [text for text in texts if _MADE.search(text.source)]


def early_and_late(heard: Sequence[Heard]) -> tuple[list[float], list[float]]:
    """Microseconds by which a submission's rounds exceed what is calibrated: the first of all, then all others."""
    own = [one.switch_us for one in heard if one.peer == "submission"]
    return own[:_HEAD_START], own[_HEAD_START:]


def streams(recorder: Recorder) -> None:
    """Rows `clock/streams`, a case for each honest submission that makes a stream: by how much its first rounds of all,
    and those after them, exceed what is calibrated; its points. Which clock counted is printed.
    """
    from grader.judge.arbiter import Arbiter

    limit, arbiter = Limit(150), Arbiter("cuda")
    try:
        for text in on_streams(corpus()):
            if text.lacks or not limit.allows(_A_GRADING_S):
                continue
            with listening() as heard:
                verdict = arbiter.grade(text.source, find(text.exercise))
            print(f"{text.name}: {verdict.points:g} points; {verdict.clock}", flush=True)
            recorder.add("clock/streams", text.name, "points", "1", verdict.points)
            for metric, values in zip(("first_rounds_us", "later_rounds_us"), early_and_late(heard), strict=True):
                if len(values) > 1:
                    recorder.add("clock/streams", text.name, metric, "µs", *astuple(interval(values)))
    finally:
        arbiter.close()
