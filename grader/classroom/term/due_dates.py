"""Due dates, for all students or longer for one."""

from __future__ import annotations

import math
import shlex
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from grader.classroom import course_folder as folder
from grader.classroom import inbox
from grader.classroom.answers import Result
from grader.classroom.settings import CONFIG_FILE
from grader.errors import ClassroomError
from grader.leaderboard.board_run import Deadline

_MOST_HOURS = 24 * 366
_YEARS = range(2000, 3000)


@dataclass(frozen=True)
class DueDate(Result):
    """When an assignment is due, for all students or for one. `due` is ISO 8601 in UTC; empty if it is never due."""

    assignment: str
    due: str
    student: str = ""
    next: str = ""  # the command that makes graded work follow

    def to_text(self) -> str:
        whose = f" for {self.student}" if self.student else ""
        local = datetime.fromisoformat(self.due).astimezone().strftime("%Y-%m-%d %H:%M %Z") if self.due else ""
        said = f"is due on {local} ({self.due})" if self.due else "has no due date"
        lines = [f"{self.assignment} {said}{whose}."]
        return "\n".join([*lines, f"Next: {self.next}"] if self.next else lines)


def set_due_date(course: Path, assignment: str, due: str) -> DueDate:
    """Set an assignment's due date: ISO 8601, in this machine's time zone unless it names one.

    "none" removes it with all extensions, which nbgrader could not add to anything.

    Raises:
        ClassroomError: no such assignment, or this is not a time.
    """
    api = folder.released(course, assignment)
    when = None if due == "none" else _utc(due)
    with api.gradebook as gradebook:
        if when is None:
            for entry in gradebook.assignment_submissions(assignment):
                entry.extension = None
        gradebook.update_or_create_assignment(assignment, duedate=when)
    return DueDate(assignment, _text(when), next=_rescore(api, assignment))


def extend(course: Path, assignment: str, student: str, hours: float) -> DueDate:
    """Give one student `hours` beyond the due date, instead of any earlier extension; 0 takes it back.

    Raises:
        ClassroomError: no such assignment or student, no due date, or the hours are negative or not a number.
    """
    if not (math.isfinite(hours) and 0 <= hours <= _MOST_HOURS):
        raise ClassroomError(f"{hours:g} hours cannot be an extension: give a number from 0 to {_MOST_HOURS}.")
    api = folder.released(course, assignment)
    with api.gradebook as gradebook:
        due = gradebook.find_assignment(assignment).duedate
        if due is None:
            raise ClassroomError(f"{assignment} has no due date to extend: set one with `grader classroom due`.")
        if student not in {each.id for each in gradebook.students} | set(api.get_submitted_students(assignment)):
            raise ClassroomError(f"There is no student {student!r} in the gradebook; import the roster first.")
        gradebook.update_or_create_student(student)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SQLAlchemy 2.1 on nbgrader 0.9.6
            gradebook.update_or_create_submission(assignment, student)
        gradebook.grant_extension(assignment, student, minutes=60 * hours)
    return DueDate(assignment, _text(due + timedelta(hours=hours)), student, _rescore(api, assignment))


def deadline(api: Any, assignment: str, student: str) -> tuple[str, datetime | None]:
    """The due date as text, empty if there is none, and as a naive UTC time with the student's extension."""
    due, own = _due_dates(api, assignment)
    return _text(due), own.get(student, due)


def counted(course: Path, assignment: str) -> Deadline:
    """The deadline for the boards of this assignment's exercises; none outside of a course folder."""
    if not (course / CONFIG_FILE).is_file():
        return Deadline()
    api = folder.api(course)
    due, own = _due_dates(api, assignment)
    if due is None:
        return Deadline()
    until = {student: own.get(student, due) for student in api.get_submitted_students(assignment)}
    late = {
        student: latest
        for student, latest in until.items()
        if (folder.timestamp(api.coursedir, assignment, student) or datetime.min) > latest
    }
    return Deadline(_text(due), inbox.last_on_time(api, assignment, late))


def _due_dates(api: Any, assignment: str) -> tuple[datetime | None, dict[str, datetime]]:
    """The due date, and those of the students with an entry in the gradebook."""
    if not folder.in_gradebook(api, assignment):
        return None, {}
    with api.gradebook as gradebook:
        due: datetime | None = gradebook.find_assignment(assignment).duedate
        entries = gradebook.assignment_submissions(assignment) if due is not None else ()
        return due, {entry.student.id: entry.duedate for entry in entries}


def _rescore(api: Any, assignment: str) -> str:
    if not folder.graded(api, assignment):
        return ""
    return f"grader classroom rescore {shlex.quote(str(api.coursedir.root))} {assignment}"


def _utc(text: str) -> datetime:
    """A naive UTC time, as nbgrader stores it."""
    try:
        when = datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        when = datetime.min
    if when.year not in _YEARS:  # with room for extensions and other time zones
        raise ClassroomError(f'{text!r} is not a time: write it like "2026-12-01 18:00", or "none".')
    return when


def _text(when: datetime | None) -> str:
    return when.replace(tzinfo=UTC).isoformat(timespec="minutes") if when is not None else ""
