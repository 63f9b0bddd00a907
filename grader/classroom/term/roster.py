"""The class list: students' ids, names and addresses, from a CSV file into the gradebook."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from grader.classroom import course_folder as folder
from grader.classroom.answers import Result
from grader.classroom.student_names import is_name
from grader.errors import ClassroomError
from grader.words import count, plural

# The gradebook's fields, and what the exports of learning platforms call them.
_COLUMNS = {
    "id": ("sis login id", "id", "student_id", "username", "sid", "login"),  # Canvas's `ID` is a number of its own
    "first_name": ("first_name", "first name", "firstname"),
    "last_name": ("last_name", "last name", "lastname", "surname"),
    "email": ("email", "email address", "e-mail"),
    "lms_user_id": ("lms_user_id", "canvas_id", "id number", "id"),
}


@dataclass(frozen=True)
class RosterResult(Result):
    """The students that the file added, and those that it updated."""

    added: tuple[str, ...]
    updated: tuple[str, ...]

    def to_text(self) -> str:
        return f"Roster: {plural(len(self.added), 'student')} added, {count(len(self.updated))} updated."


def import_roster(course: Path, file: Path) -> RosterResult:
    """Add the students of a CSV file, with a header, to the gradebook; update those that are there. Nobody is removed.

    Raises:
        ClassroomError: the file cannot be read, or has a row that cannot be used. Then the gradebook is not changed.
    """
    students = _read(file)
    api = folder.api(course)
    with api.gradebook as gradebook:
        known = {student.id for student in gradebook.students}
        for name, fields in students.items():
            gradebook.update_or_create_student(name, **fields)
    added = tuple(name for name in students if name not in known)
    return RosterResult(added, tuple(name for name in students if name in known))


def _read(file: Path) -> dict[str, dict[str, str]]:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ClassroomError(f"{file} cannot be read as UTF-8 text: {error}.") from None
    reader = csv.DictReader(text.splitlines(), delimiter=";" if ";" in text.partition("\n")[0] else ",")
    try:
        header, rows = reader.fieldnames or (), [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise ClassroomError(f"{file} cannot be read as a table: {error}.") from None
    columns = {field: _column(header, names) for field, names in _COLUMNS.items()}
    if columns["id"] is None:
        raise ClassroomError(f"{file} has no column for the students' ids: call one of its columns `id`.")
    if columns["lms_user_id"] == columns["id"]:
        columns["lms_user_id"] = None
    found: dict[str, dict[str, str]] = {}
    for line, row in rows:
        values = {field: (row[name] or "").strip() for field, name in columns.items() if name is not None}
        name = values.pop("id")
        if not name and not any(values.values()):
            continue
        if not is_name(name):
            raise ClassroomError(f"{file}, line {line}: {name!r} cannot be a student's id.")
        if name in found:
            raise ClassroomError(f"{file}, line {line}: {name} is in it twice.")
        found[name] = {field: value for field, value in values.items() if value}
    return found


def _column(header: Iterable[str], names: tuple[str, ...]) -> str | None:
    given = {name.strip().lower(): name for name in header}
    return next((given[name] for name in names if name in given), None)
