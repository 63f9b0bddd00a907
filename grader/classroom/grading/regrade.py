"""A forced grading that can be interrupted: which students it has left, in a file of the course folder."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from grader.classroom.grading.verdict_store import now, write_in_one_step

_FOLDER = ".regrade"


@dataclass(frozen=True)
class Regrade:
    """The students whose work a run judges again; nobody if nothing is forced.

    `since`: verdicts from before do not count (ISO 8601, UTC). `goes_on`: it began in an earlier run. `alone`: it is of
    one student who was named, and is not recorded.
    """

    file: Path
    students: frozenset[str] = frozenset()
    since: str = ""
    goes_on: bool = False
    alone: bool = False

    def start(self) -> None:
        """Record a new grading, once its judges are there, so that it goes on if it is interrupted."""
        if self.students and not (self.goes_on or self.alone):
            _write(self.file, self.since, self.students)

    def done(self, student: str) -> None:
        """Record that a student's work is graded."""
        since, left = _read(self.file)
        if student in left:
            _write(self.file, since, left - {student})


def begin(course: Path, assignment: str, students: Collection[str], *, force: bool, alone: bool) -> Regrade:
    """The forced grading that a run of an assignment has to do; if an earlier one was interrupted, what it has left.

    `students`: those of this run. `alone`: one student was named, who is not part of the grading of all. Nothing is
    recorded yet.
    """
    file = Path(course) / _FOLDER / f"{assignment}.json"
    since, left = _read(file)
    left = left.intersection(students)
    if force and (alone or not left):
        return Regrade(file, frozenset(students), now(), alone=alone)
    return Regrade(file, left, since, goes_on=True) if left else Regrade(file)


def _read(file: Path) -> tuple[str, frozenset[str]]:
    try:
        found = json.loads(file.read_bytes())
        return str(found["since"]), frozenset(map(str, found["left"]))
    except (OSError, ValueError, KeyError, TypeError):
        return "", frozenset()


def _write(file: Path, since: str, left: Collection[str]) -> None:
    if left:
        file.parent.mkdir(exist_ok=True)
        write_in_one_step(file, json.dumps({"since": since, "left": sorted(left)}))
    else:
        file.unlink(missing_ok=True)
