"""The seconds of a grading by stage, for a fake judge that takes known times."""

import time

import pytest

from benchmarks import stages
from benchmarks.material import MIXED, Text


class SlowJudge:
    """Reports three stages. The second comes twice and takes the longest."""

    def __init__(self, device="cuda"):
        self.expected = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def expect(self, submissions):
        self.expected.append(submissions)

    def grade(self, source, exercise, progress=lambda *_: None, kernels=False):
        for stage, seconds in (("importing the cell", 0.0), ("timing a", 0.05), ("timing b", 0.05), ("looking", 0.01)):
            progress(stage, 0, 1)
            time.sleep(seconds)


def test_the_seconds_of_a_stage_are_added_up():
    """Stages are named by the first word of the judge's messages, and add up to the whole grading."""
    judge, text = SlowJudge(), Text("one", "vector_add", "honest", "pass")
    took = stages.by_stage(judge, text, [text, text])
    assert list(took) == ["waiting", "importing", "timing", "looking", "all"]
    assert took["timing"] >= 0.1
    assert sum(took.values()) - took["all"] == pytest.approx(took["all"], abs=0.01)
    assert judge.expected == [[("pass", "vector_add")] * 2]


def test_each_exercises_first_grading_is_left_out(monkeypatch):
    """It also times the baselines, which the others find known."""
    rows = []
    recorder = type("Recorder", (), {"add": lambda self, *row: rows.append(row)})()
    monkeypatch.setattr(stages, "Judge", SlowJudge)
    monkeypatch.setattr(stages, "_STUDENTS", 2)
    stages.stages(recorder)
    assert {row[1] for row in rows} == {
        f"{exercise}, {stage}" for exercise in MIXED for stage in ("waiting", "importing", "timing", "looking", "all")
    }
    assert all(row[:1] == ("throughput/stages",) and row[4] == row[5] == row[6] for row in rows)


def test_gradings_are_timed_with_and_without_the_kernels_profile(monkeypatch):
    """The texts are the same, and each pass has its own judge."""
    rows, looks = [], []

    class Watched(SlowJudge):
        def grade(self, source, exercise, kernels):
            looks.append(kernels)
            time.sleep(0.02 if kernels else 0.0)

    monkeypatch.setattr(stages, "Judge", Watched)
    monkeypatch.setattr(stages, "_LOOKED_AT", 2)
    stages.kernel_looks(type("Recorder", (), {"add": lambda self, *row: rows.append(row)})())
    count = 2 * len(MIXED)
    assert looks == [*[False] * count, *[True] * 2 * count, *[False] * count]
    without, with_them = (row[4] for row in rows)
    assert without < 0.02 <= with_them
