"""The grades of a class, read from the gradebook: per student, assignment and exercise."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grader.classroom import course_folder as folder


@dataclass(frozen=True)
class Work:
    """A student's points in one assignment. `cells` are the points of each graded cell, before penalties."""

    cells: dict[str, float] = field(default_factory=dict)
    extra: float = 0.0
    penalty: float = 0.0
    submitted: bool = False

    @property
    def score(self) -> float:
        """All points after the penalty for late work; never negative."""
        return max(0.0, sum(self.cells.values()) + self.extra - self.penalty)


@dataclass(frozen=True)
class StudentGrades:
    """A student, with the work by assignment."""

    id: str
    first_name: str
    last_name: str
    email: str
    lms_user_id: str
    work: dict[str, Work]

    @property
    def score(self) -> float:
        return sum(work.score for work in self.work.values())


@dataclass(frozen=True)
class ClassGrades:
    """`maxima`: by assignment, the most points of each graded cell. `students` are sorted by id."""

    maxima: dict[str, dict[str, float]]
    students: tuple[StudentGrades, ...]


def class_grades(course: Path) -> ClassGrades:
    """The grades of everyone in the gradebook or the roster, in all assignments."""
    api = folder.api(course)
    with api.gradebook as gradebook:
        names = sorted(assignment.name for assignment in gradebook.assignments)
        columns = {name: _columns(gradebook.find_assignment(name)) for name in names}
        work: dict[str, dict[str, Work]] = {student.id: {} for student in gradebook.students}
        for name in names:
            for entry in gradebook.assignment_submissions(name):
                work[entry.student.id][name] = _work(entry, columns[name])
        students = tuple(
            StudentGrades(
                id=student.id,
                first_name=student.first_name or "",
                last_name=student.last_name or "",
                email=student.email or "",
                lms_user_id=student.lms_user_id or "",
                work={name: work[student.id].get(name, Work()) for name in names},
            )
            for student in sorted(gradebook.students, key=lambda student: str(student.id))
        )
    return ClassGrades({name: dict(cells.values()) for name, cells in columns.items()}, students)


def cell_title(grade_id: str) -> str:
    """A column's name: the exercise's id, or the grade_id of another cell."""
    return grade_id.removeprefix(folder.CHECK_PREFIX)


def _columns(assignment: Any) -> dict[tuple[str, str], tuple[str, float]]:
    """By notebook and grade_id, each graded cell's name and most points.

    The name is the grade_id, after the notebook's name if several notebooks have it.
    """
    cells = {
        (notebook.name, cell.name): float(cell.max_score)
        for notebook in assignment.notebooks
        for cell in (*notebook.grade_cells, *notebook.task_cells)
    }
    number = Counter(grade_id for _, grade_id in cells)
    return {
        (notebook, grade_id): (grade_id if number[grade_id] == 1 else f"{notebook}/{grade_id}", most)
        for (notebook, grade_id), most in cells.items()
    }


def _work(entry: Any, columns: dict[tuple[str, str], tuple[str, float]]) -> Work:
    scored = {
        (notebook.name, grade.name): grade
        for notebook in entry.notebooks
        for grade in notebook.grades
        if grade.manual_score is not None or grade.auto_score is not None
    }
    points = {
        key: float(grade.auto_score if grade.manual_score is None else grade.manual_score)
        for key, grade in scored.items()
    }
    return Work(
        cells={name: points.get(key, 0.0) for key, (name, _) in columns.items()},
        extra=sum(float(grade.extra_credit or 0.0) for grade in scored.values()),
        penalty=sum(float(notebook.late_submission_penalty or 0.0) for notebook in entry.notebooks),
        submitted=entry.timestamp is not None or bool(scored),
    )
