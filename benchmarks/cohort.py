"""A class of mixed quality, graded end to end without a GPU, and its gradebook compared with an independent recount.

`python -m benchmarks.cohort 30 100 300 --workers 1 2` prints a line per size and number of workers: is the time linear
in the number of students, and what do two workers save? The recount judges each text alone, without store or workers.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.classes import Class, make_class, surroundings
from benchmarks.material import Text, crashing, honest, unique, wrong
from grader.authoring.stubs import unsolved
from grader.exercises import find
from grader.judge.service import Judge

__all__ = ["Cohort", "deal", "main", "penalty"]

EXERCISES = ("vector_add", "softmax")
_CHAPTER = "03_triton"
_DUE = datetime(2026, 1, 1)
_KINDS = {"right": 0.5, "wrong": 0.2, "hostile": 0.15, "empty": 0.1, "copied": 0.05}
_LATE, _RESUBMITTED = 0.15, 0.1
_PERCENT_PER_DAY = 10.0


@dataclass(frozen=True)
class Work:
    """A student's submission: a text per exercise, and how late it is."""

    texts: dict[str, Text]
    hours_late: float = 0.0


@dataclass(frozen=True)
class Cohort:
    """The first submissions of a class, and those of the students who submit again after the first grading."""

    first: dict[str, Work]
    again: dict[str, Work]

    @property
    def last(self) -> dict[str, Work]:
        """The submissions that count."""
        return self.first | self.again


def deal(students: int, seed: int = 1) -> Cohort:
    """Draw a class. The same arguments give the same class."""
    chance = random.Random(f"{seed} {students}")
    names = [f"student{number:03}" for number in range(students)]
    first = {name: _work(name, chance) for name in names}
    again = {name: _work(f"{name} again", chance) for name in names if chance.random() < _RESUBMITTED}
    return Cohort(first, again)


def penalty(points: float, hours_late: float) -> float:
    """The points that late work loses, computed here again."""
    return points * min(1.0, math.ceil(max(0.0, hours_late) / 24) * _PERCENT_PER_DAY / 100)


def _work(tag: str, chance: random.Random) -> Work:
    texts = {}
    for exercise in EXERCISES:
        kind = chance.choices(list(_KINDS), list(_KINDS.values()))[0]
        texts[exercise] = _text(kind, exercise, tag, chance)
    return Work(texts, chance.uniform(0.1, 100) if chance.random() < _LATE else 0.0)


def _text(kind: str, exercise: str, tag: str, chance: random.Random) -> Text:
    if kind == "copied":
        return unique(honest(exercise, "simulator")[0], "copied")
    if kind == "empty":
        return Text("stub", exercise, "wrong", unsolved(exercise))
    choice = {"right": honest(exercise, "simulator")[:3], "wrong": wrong(exercise), "hostile": crashing(exercise)}[kind]
    return unique(chance.choice(choice), tag)


class Recount:
    """Points per text from one judge, each text once for all classes."""

    def __init__(self) -> None:
        self._judge, self._points = Judge("simulator", sandbox=True), dict[tuple[str, str], float]()

    def total(self, work: Work) -> float:
        """The points that a student should have, after the penalty of each notebook."""
        points = [self._of(text) for text in work.texts.values()]
        return sum(each - penalty(each, work.hours_late) for each in points)

    def _of(self, text: Text) -> float:
        key = (text.exercise, text.source)
        if key not in self._points:
            self._points[key] = self._judge.grade(text.source, text.exercise).points
        return self._points[key]

    def close(self) -> None:
        self._judge.close()


def grade(cohort: Cohort, workers: int, folder: Path) -> tuple[float, dict[str, float]]:
    """Grade a class twice, before and after some submit again; return the seconds, and everybody's points."""
    from grader.classroom import class_actions

    made = make_class(folder, {name: work.texts for name, work in cohort.first.items()}, "simulator", stock=False)
    config = made.folder / "nbgrader_config.py"
    config.write_text(config.read_text(encoding="utf-8").replace('method = "none"', 'method = "per day"'))
    with made.api().gradebook as gradebook:
        gradebook.update_or_create_assignment(_CHAPTER, duedate=_DUE)
    for name, work in cohort.first.items():
        _write_time(made, name, work)
    begun = time.perf_counter()
    class_actions.autograde(made.folder, _CHAPTER, jobs=workers)
    for name, work in cohort.again.items():
        _hand_in_again(made, name, work)
    class_actions.autograde(made.folder, _CHAPTER, jobs=workers)
    seconds = time.perf_counter() - begun
    with made.api().gradebook as gradebook:
        entries = gradebook.assignment_submissions(_CHAPTER)
        found = {entry.student.id: entry.score - _penalties(entry) for entry in entries}
    return seconds, found


def _penalties(entry: Any) -> float:
    return sum(notebook.late_submission_penalty or 0.0 for notebook in entry.notebooks)


def _write_time(made: Class, student: str, work: Work, days_earlier: int = 1) -> None:
    early = _DUE - timedelta(days=days_earlier)
    when = _DUE + timedelta(hours=work.hours_late) if work.hours_late else early
    file = made.folder / "submitted" / student / _CHAPTER / "timestamp.txt"
    file.write_text(f"{when:%Y-%m-%d %H:%M:%S.%f} UTC", encoding="utf-8")


def _hand_in_again(made: Class, student: str, work: Work) -> None:
    """Replace a submission as `collect` does: texts, and a time that differs from the first one's."""
    for exercise, text in work.texts.items():
        path = made.folder / "submitted" / student / _CHAPTER / f"{find(exercise).notebook}.ipynb"
        notebook = json.loads(path.read_text(encoding="utf-8"))
        for cell in notebook["cells"]:
            if cell["metadata"].get("nbgrader", {}).get("grade_id") == exercise:
                cell["source"] = text.source
        path.write_text(json.dumps(notebook), encoding="utf-8")
    _write_time(made, student, work, days_earlier=0)


def main(arguments: Sequence[str]) -> int:
    """Print the lines; return 1 if a gradebook differs from the recount."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cohort", description=__doc__)
    parser.add_argument("students", type=int, nargs="+")
    parser.add_argument("--workers", type=int, nargs="+", default=[1])
    asked = parser.parse_args(arguments)
    recount, wrong_ones = Recount(), 0
    try:
        for students in asked.students:
            cohort = deal(students)
            expected = {name: recount.total(work) for name, work in cohort.last.items()}
            for workers in asked.workers:
                with tempfile.TemporaryDirectory() as scratch, surroundings(Path(scratch)):
                    seconds, found = grade(cohort, workers, Path(scratch, "course"))
                differ = sorted(
                    name for name in expected | found
                    if not math.isclose(expected.get(name, math.nan), found.get(name, math.nan), abs_tol=1e-6)
                )  # fmt: skip
                wrong_ones += len(differ)
                memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
                print(
                    f"{students} students, {workers} workers: {seconds:.1f} s, {seconds / students:.2f} s per student, "
                    f"{memory:.0f} MiB in this process; {len(differ)} differ from the recount {differ[:5] or ''}",
                    flush=True,
                )
    finally:
        recount.close()
    return 1 if wrong_ones else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
