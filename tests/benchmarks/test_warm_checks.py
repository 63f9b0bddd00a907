"""The measurement of warm checks: both trees take turns, and the first check of a session is not measured."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

from benchmarks import warm_checks
from benchmarks.limits import kept
from grader.installation import CHECKOUT


class Timed:
    """A session whose checks take 9 s at first and then 1 s in `old`, 2 s in `new`."""

    asked: ClassVar[list[str]] = []
    torch = "2.13"

    def __init__(self, tree: Path, exercise: str) -> None:
        self.name, self.cold = tree.name, True

    def __enter__(self) -> Timed:
        return self

    def __exit__(self, *_: object) -> None:
        self.asked.append(f"{self.name} ends")

    def check(self) -> float:
        cold, self.cold = self.cold, False
        if not cold:
            self.asked.append(self.name)
        return 9.0 if cold else {"old": 1.0}.get(self.name, 2.0)


def test_two_trees_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each exercise writes a row per tree, with every time and their median."""
    monkeypatch.setattr(warm_checks, "Session", Timed)
    monkeypatch.setattr(warm_checks, "RESULTS", tmp_path / "new" / "benchmarks" / "results")
    monkeypatch.setattr(Timed, "asked", [])
    assert warm_checks.main([str(tmp_path / "old"), "--edits", "3", "softmax"]) == 0

    assert Timed.asked == ["old", "new"] * 3 + ["new ends", "old ends"]
    (path,) = (tmp_path / "new" / "benchmarks" / "results" / "warm_checks").iterdir()
    rows = kept(path)
    assert [(row["tree"], row["exercise"], row["warm_s"], row["median_s"]) for row in rows] == [
        ("before", "softmax", [1.0] * 3, 1.0), ("after", "softmax", [2.0] * 3, 2.0),
    ]  # fmt: skip
    assert rows[0]["commit"] == "old"


@pytest.mark.skipif(CHECKOUT is None, reason="needs the source notebooks")
def test_a_session_grades_the_reference_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process of its own, from the given tree."""
    monkeypatch.setattr(warm_checks, "_PAUSE_S", 0.0)
    with warm_checks.Session(Path(__file__).parents[2], "audit") as session:
        assert session.check() > 0
    assert session.torch
