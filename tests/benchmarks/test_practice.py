"""The bench that grades each reference by both clocks."""

from __future__ import annotations

import contextlib
import os
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import practice
from benchmarks.limits import Fault

POINTS, RATIOS = {"auto": 5.0, "host": 5.0}, {"auto": 2.0, "host": 2.01}


class Fake:
    """A judge that asks how to exchange data when it grades first, as the real one does."""

    def __init__(self, device: str) -> None:
        self.memory = ""

    def grade(self, source: str, exercise: str, timed: bool = True) -> Any:
        self.memory = self.memory or os.environ["GRADER_MEMORY"]
        gates = (SimpleNamespace(label="torch.add", ratio=RATIOS[self.memory]), SimpleNamespace(label="", ratio=None))
        timings = (SimpleNamespace(scale=8 if self.memory == "auto" else 1),)
        return SimpleNamespace(points=POINTS[self.memory], seconds=1.0, gates=gates, timings=timings)


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, float]]:
    monkeypatch.delenv("GRADER_MEMORY", raising=False)
    monkeypatch.delenv("BENCH_LIMIT_S", raising=False)
    monkeypatch.setattr(practice, "Judge", lambda device: contextlib.nullcontext(Fake(device)))
    exercise = SimpleNamespace(max_points=5.0)
    monkeypatch.setattr(practice, "EXERCISES", {"vector_add": exercise, "softmax": exercise})
    return []


def _recorder(rows: list[tuple[str, str, float]]) -> Any:
    return SimpleNamespace(add=lambda bench, case, metric, unit, value: rows.append((bench, metric, value)))


def test_each_clock_grades_and_the_ratios_are_compared(rows, monkeypatch):
    """Only the named exercise is graded. The variable is as it was afterwards."""
    monkeypatch.setenv("PRACTICE_OF", "softmax")
    practice.practice(_recorder(rows))
    assert {bench for bench, _, _ in rows} == {"practice/softmax"}
    assert [value for _, metric, value in rows if metric == "times_as_large"] == [8, 1]
    assert [value for _, metric, value in rows if metric == "ratio_difference"] == [pytest.approx(0.5)]
    assert "GRADER_MEMORY" not in os.environ


@pytest.mark.parametrize(("changed", "said"), [
    ((POINTS, 4.0), r"vector_add has 4 of 5 points by the practice clock"), ((RATIOS, 2.2), r"differ by 10\.0 %"),
])  # fmt: skip
def test_lost_points_and_other_ratios_are_faults(rows, monkeypatch, changed, said):
    """Both are named, after all rows are written."""
    monkeypatch.setitem(changed[0], "host", changed[1])
    with pytest.raises(Fault, match=said):
        practice.practice(_recorder(rows))
    assert {bench for bench, _, _ in rows} == {"practice/vector_add", "practice/softmax"}
