"""The gradebook as CSV: with a column per exercise, or as Canvas, Moodle and Gradescope import it."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Literal

from grader.classroom.term.class_grades import ClassGrades, StudentGrades, cell_title
from grader.errors import ClassroomError

Format = Literal["csv", "canvas", "moodle", "gradescope"]
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet computes a cell that begins with one of these


def as_csv(grades: ClassGrades, style: Format = "csv") -> str:
    """A table with a header and a row per student; numbers have a decimal point and at most two places."""
    rows = {"csv": _wide, "canvas": _canvas, "moodle": _moodle, "gradescope": _gradescope}[style](grades)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def write_private(file: Path, text: str) -> None:
    """Write a file that holds students' names or grades, readable by its owner only.

    Raises:
        ClassroomError: the file cannot be written.
    """
    try:
        file.touch(mode=0o600)
        if file.is_file():  # not a pipe or a terminal
            file.chmod(0o600)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ClassroomError(f"{file} cannot be written: {error.strerror}.") from None


def as_text_cell(text: str) -> str:
    """Text that others chose, with an apostrophe in front if a spreadsheet would take it for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def _wide(grades: ClassGrades) -> list[list[str]]:
    """Each exercise's points, extra credit, penalty and total, per assignment."""
    header = ["id", "first_name", "last_name", "email"]
    most = ["Points possible", "", "", ""]
    for assignment, cells in grades.maxima.items():
        header += [f"{assignment}/{cell_title(name)}" for name in cells]
        header += [f"{assignment}/{name}" for name in ("extra credit", "late penalty", "total")]
        most += [*map(_number, cells.values()), "", "", _number(sum(cells.values()))]
    rows = [[*header, "total"], [*most, _number(_maximum(grades))]]
    for student in grades.students:
        row = [student.id, *_names(student)]
        for assignment, cells in grades.maxima.items():
            work = student.work[assignment]
            points = [work.cells.get(name, 0.0) if work.submitted else None for name in cells]
            row += ["" if each is None else _number(each) for each in points]
            row += [_number(work.extra), _number(work.penalty), _number(work.score)]
        rows.append([*row, _number(student.score)])
    return rows


def _canvas(grades: ClassGrades) -> list[list[str]]:
    """Canvas finds students by `ID` or `SIS Login ID`, and assignments by name."""
    rows = [["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *grades.maxima]]
    rows.append(["    Points Possible", "", "", "", "", *(_number(sum(c.values())) for c in grades.maxima.values())])
    for student in grades.students:
        rows.append([_surname_first(student), student.lms_user_id, "", student.id, "", *_scores(student)])
    return rows


def _moodle(grades: ClassGrades) -> list[list[str]]:
    """Moodle's import asks which column names the student: `Username`, `ID number` or `Email address`."""
    rows = [["Username", "ID number", "First name", "Last name", "Email address", *grades.maxima]]
    for student in grades.students:
        rows.append([student.id, student.lms_user_id, *_names(student), *_scores(student)])
    return rows


def _gradescope(grades: ClassGrades) -> list[list[str]]:
    """The columns of Gradescope's own download: a student's names, `SID` and `Email`, then scores."""
    header = ["First Name", "Last Name", "SID", "Email", "Total Score", "Max Points"]
    rows = [[*header, *(f"{name} ({_number(sum(cells.values()))} pts)" for name, cells in grades.maxima.items())]]
    for student in grades.students:
        first_name, last_name, email = _names(student)
        totals = [_number(student.score), _number(_maximum(grades))]
        rows.append([first_name, last_name, student.id, email, *totals, *_scores(student)])
    return rows


def _scores(student: StudentGrades) -> list[str]:
    """A score per assignment; empty if the student did not submit, so that a platform shows it as missing."""
    return [_number(work.score) if work.submitted else "" for work in student.work.values()]


def _maximum(grades: ClassGrades) -> float:
    return sum(sum(cells.values()) for cells in grades.maxima.values())


def _names(student: StudentGrades) -> list[str]:
    """First name, last name and address."""
    return [as_text_cell(each) for each in (student.first_name, student.last_name, student.email)]


def _surname_first(student: StudentGrades) -> str:
    return as_text_cell(", ".join(filter(None, [student.last_name, student.first_name])) or student.id)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
