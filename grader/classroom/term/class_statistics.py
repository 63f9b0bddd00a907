"""How a class fared: pass rates, points and the most frequent bugs per exercise, and who is missing."""

from __future__ import annotations

import csv
import io
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from grader.classroom import course_folder as folder
from grader.classroom.answers import Result
from grader.classroom.course_folder import check_cells, graded_notebooks, verdict_in
from grader.classroom.term.class_grades import cell_title
from grader.classroom.term.grade_export import as_text_cell
from grader.errors import ClassroomError
from grader.verdict import Verdict
from grader.words import on_one_line, plural

_MOST_BUGS = 5


@dataclass(frozen=True)
class ExerciseStatistics:
    """One exercise. `passed` and `not_written` count students of the `judged`; `points` are on the exercise's scale.

    `bugs`: the most frequent sentences about failures, each with the number of students.
    """

    assignment: str
    exercise: str
    judged: int
    passed: int
    not_written: int
    points: tuple[float, ...]
    max_points: float
    bugs: tuple[tuple[str, int], ...]

    @property
    def mean(self) -> float:
        return fmean(self.points) if self.points else 0.0


@dataclass(frozen=True)
class Statistics(Result):
    """A class. `missing`: by assignment, the students in the gradebook who submitted nothing."""

    exercises: tuple[ExerciseStatistics, ...]
    missing: dict[str, tuple[str, ...]]

    def to_text(self) -> str:
        lines = []
        for assignment, missing in self.missing.items():
            lines.append(assignment)
            for each in (each for each in self.exercises if each.assignment == assignment):
                lines.append(
                    f"  {each.exercise:<22} {each.passed:>4} of {each.judged} passed, {each.not_written} not written, "
                    f"on average {each.mean:.1f} of {each.max_points:g}"
                )
                lines += [f"    {number:>4} × {bug}" for bug, number in each.bugs]
            if missing:
                lines.append(f"  Not submitted by {plural(len(missing), 'student')}: {', '.join(missing)}")
        return "\n".join(lines) or "Nothing is graded yet."

    def to_csv(self) -> str:
        """A row per exercise, and a row for each of its bugs."""
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        table.writerow(["assignment", "exercise", "judged", "passed", "not_written", "mean", "max_points", "bug"])
        for each in self.exercises:
            row = [each.assignment, each.exercise, each.judged, each.passed, each.not_written]
            table.writerow([*row, f"{each.mean:.2f}", f"{each.max_points:g}", ""])
            table.writerows(
                [each.assignment, each.exercise, number, "", "", "", "", as_text_cell(bug)] for bug, number in each.bugs
            )
        return text.getvalue()

    def to_html(self) -> str:
        """A page that needs no other file."""
        from jinja2 import Environment, PackageLoader, StrictUndefined

        pages = Environment(
            loader=PackageLoader("grader.classroom.term", "."), autoescape=True, undefined=StrictUndefined
        )
        drawn = [(each, _histogram(each)) for each in self.exercises]
        return pages.get_template("class_statistics.html.j2").render(statistics=self, drawn=drawn)


def class_statistics(course: Path, assignments: tuple[str, ...] = ()) -> Statistics:
    """The statistics of all graded assignments, or of those named.

    Raises:
        ClassroomError: there is no such assignment.
    """
    api = folder.api(course)
    known = [name for name in sorted(api.get_source_assignments()) if folder.in_gradebook(api, name)]
    if unknown := sorted(set(assignments) - set(known)):
        raise ClassroomError(f"{', '.join(unknown)}: not released; the assignments are {', '.join(known) or 'none'}.")
    found, missing = [], {}
    with api.gradebook as gradebook:
        roster = sorted(str(student.id) for student in gradebook.students)
    for name in (name for name in known if name in assignments or not assignments):
        submitted = set(api.get_submitted_students(name))
        missing[name] = tuple(student for student in roster if student not in submitted)
        found += _of_assignment(api, name)
    return Statistics(tuple(found), missing)


def _of_assignment(api: Any, assignment: str) -> list[ExerciseStatistics]:
    verdicts: dict[str, list[Verdict]] = {}
    for student in sorted(folder.graded(api, assignment)):
        for _, document in graded_notebooks(api, assignment, student):
            for cell in check_cells(document):
                exercise = cell_title(cell["metadata"]["nbgrader"]["grade_id"])
                if (verdict := verdict_in(cell)) is not None:
                    verdicts.setdefault(exercise, []).append(verdict)
    return [
        ExerciseStatistics(
            assignment=assignment,
            exercise=exercise,
            judged=len(all_of_it),
            passed=sum(verdict.status == "passed" for verdict in all_of_it),
            not_written=sum(bool(v.failure and v.failure.kind == "not_written") for v in all_of_it),
            points=tuple(verdict.points for verdict in all_of_it),
            max_points=max(verdict.max_points for verdict in all_of_it),
            bugs=tuple(Counter(filter(None, map(bug_of, all_of_it))).most_common(_MOST_BUGS)),
        )
        for exercise, all_of_it in verdicts.items()
    ]


def bug_of(verdict: Verdict) -> str:
    """The sentence that names a submission's bug, or what went wrong first; empty if nothing did."""
    for case in verdict.cases:
        if case.mismatch is not None and case.mismatch.suspect:
            return on_one_line(case.mismatch.suspect)
    failures = [verdict.failure, *(case.failure for case in verdict.cases)]
    for failure in filter(None, failures):
        if failure.kind != "not_written":
            return on_one_line(failure.message)
    wrong = next((case.name for case in verdict.cases if case.mismatch is not None), "")
    return f"A wrong output, first in the case {wrong}." if wrong else ""


def _histogram(each: ExerciseStatistics) -> list[tuple[str, int, float]]:
    """The number of students in ten steps of points: a label, the number, and its share of the highest number."""
    width = each.max_points / 10
    counts = [0] * 10
    for points in each.points:
        counts[min(9, int(points / width) if width else 0)] += 1
    labels = [f"{number * width:g}–{(number + 1) * width:g}" for number in range(10)]
    return [(label, number, number / max(1, *counts)) for label, number in zip(labels, counts, strict=True)]
