"""The grades of a class, read from the gradebook: per student, assignment and exercise."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grader.classroom import course_folder as folder
from grader.errors import ClassroomError


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


def class_grades(course: Path, assignments: tuple[str, ...] = ()) -> ClassGrades:
    """The grades of everyone in the gradebook or the roster, in all assignments or in those named.

    Raises:
        ClassroomError: an assignment is not in the gradebook.
    """
    api = folder.api(course)
    with api.gradebook as gradebook:
        known = sorted(assignment.name for assignment in gradebook.assignments)
        if unknown := sorted(set(assignments) - set(known)):
            raise ClassroomError(f"{', '.join(unknown)}: not in the gradebook, which has {', '.join(known) or 'none'}.")
        chosen = [name for name in known if name in assignments or not assignments]
        maxima = {name: _maxima(gradebook.find_assignment(name)) for name in chosen}
        work: dict[str, dict[str, Work]] = {student.id: {} for student in gradebook.students}
        for name in chosen:
            for entry in gradebook.assignment_submissions(name):
                work[entry.student.id][name] = _work(entry, maxima[name])
        students = tuple(
            StudentGrades(
                id=student.id,
                first_name=student.first_name or "",
                last_name=student.last_name or "",
                email=student.email or "",
                lms_user_id=student.lms_user_id or "",
                work={name: work[student.id].get(name, Work()) for name in chosen},
            )
            for student in sorted(gradebook.students, key=lambda student: str(student.id))
        )
    return ClassGrades(maxima, students)


def cell_title(grade_id: str) -> str:
    """A column's name: the exercise's id, or the grade_id of another cell."""
    return grade_id.removeprefix(folder.CHECK_PREFIX)


def _maxima(assignment: Any) -> dict[str, float]:
    cells = [cell for notebook in assignment.notebooks for cell in (*notebook.grade_cells, *notebook.task_cells)]
    return {cell.name: float(cell.max_score) for cell in cells}


def _work(entry: Any, maxima: dict[str, float]) -> Work:
    grades = [grade for notebook in entry.notebooks for grade in notebook.grades]
    scored = [grade for grade in grades if grade.manual_score is not None or grade.auto_score is not None]
    points = {each.name: each.auto_score if each.manual_score is None else each.manual_score for each in scored}
    return Work(
        cells={name: float(points.get(name, 0.0)) for name in maxima},
        extra=sum(float(grade.extra_credit or 0.0) for grade in scored),
        penalty=sum(float(notebook.late_submission_penalty or 0.0) for notebook in entry.notebooks),
        submitted=entry.timestamp is not None or bool(scored),
    )
