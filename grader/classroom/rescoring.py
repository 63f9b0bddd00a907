"""Compute points, late penalties and feedback again, from the verdicts in graded notebooks: nothing is judged."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

from grader.classroom import course_folder as folder
from grader.classroom.answers import Rescored, RescoreResult
from grader.classroom.course_folder import check_cells, graded_notebooks, verdict_in
from grader.classroom.preprocessor import outputs_of, points_of
from grader.classroom.run_log import RunLog, run_log
from grader.classroom.student_feedback import write_all
from grader.files import write_in_one_step
from grader.verdict import Progress


def rescore(
    course: Path,
    assignment: str,
    *,
    feedback: bool = True,
    release_feedback: bool = False,
    progress: Progress | None = None,
) -> RescoreResult:
    """Bring graded work up to the points, due dates, extensions and late policy that hold now.

    Points given by hand are kept; if the automatic score below them changes, the work is flagged for a person. With
    `feedback`, pages that changed are written again, and released with `release_feedback`.

    Raises:
        ClassroomError: no such assignment, or it was never released.
    """
    api = folder.released(course, assignment)
    with run_log(Path(api.coursedir.root), f"rescore-{assignment}", progress) as tell:
        result = _rescored(api, assignment, feedback, release_feedback, tell)
        for line in result.to_text().splitlines():
            tell.write(line)
    return result


def on_an_old_scale(api: Any, assignment: str) -> dict[str, list[str]]:
    """The students whose graded notebooks have other points in a check cell than the gradebook, by grade_id."""
    found: dict[str, list[str]] = {}
    students = sorted(folder.graded(api, assignment))
    with api.gradebook as gradebook:
        maxima = _maxima(gradebook, assignment)
    for student in students:
        for notebook, document in graded_notebooks(api, assignment, student):
            for cell in check_cells(document):
                grade_id = cell["metadata"]["nbgrader"]["grade_id"]
                wanted = maxima.get((notebook.stem, grade_id))
                if wanted is not None and float(cell["metadata"]["nbgrader"].get("points", 0)) != wanted:
                    found.setdefault(grade_id, []).append(student)
    return found


def _rescored(api: Any, assignment: str, feedback: bool, release_feedback: bool, tell: RunLog) -> RescoreResult:
    students = sorted(folder.graded(api, assignment))
    rows = []
    for number, student in enumerate(students):
        tell(f"rescoring {student}", number, len(students))
        with api.gradebook as gradebook:
            maxima = _maxima(gradebook, assignment)
            before = _score(gradebook, assignment, student)
            unread = _notebooks(api, gradebook, assignment, student, maxima)
            _penalties(api, gradebook, assignment, student)
            after = _score(gradebook, assignment, student)
        old = (
            f"{', '.join(unread)} judged by another version of the grader: autograde again with --force"
            if unread
            else ""
        )
        rows.append(Rescored(student, before[0], before[1], after[0], after[1], after[2], old))
    if feedback:
        problems = write_all(api, assignment, students, release=release_feedback, progress=tell)
        rows = [replace(row, problem="; ".join(filter(None, [row.problem, problems[row.student]]))) for row in rows]
    return RescoreResult(assignment, tuple(rows))


def _score(gradebook: Any, assignment: str, student: str) -> tuple[float, float, float]:
    """Points after penalties, the assignment's points at the time of grading, and the penalty."""
    entry = gradebook.find_submission(assignment, student)
    penalty = sum(notebook.late_submission_penalty or 0.0 for notebook in entry.notebooks)
    return max(0.0, float(entry.score) - penalty), float(entry.max_score), float(penalty)


def _maxima(gradebook: Any, assignment: str) -> dict[tuple[str, str], float]:
    """The points of each graded cell, by notebook and grade_id."""
    return {
        (notebook.name, cell.name): float(cell.max_score)
        for notebook in gradebook.find_assignment(assignment).notebooks
        for cell in notebook.grade_cells
    }


def _notebooks(
    api: Any, gradebook: Any, assignment: str, student: str, maxima: dict[tuple[str, str], float]
) -> list[str]:  # fmt: skip
    """Write scores and reports on the scale that holds now.

    Returns:
        The exercises whose points are left on an old scale, because they have no verdict.
    """
    unread = []
    for notebook, document in graded_notebooks(api, assignment, student):
        before = json.dumps(document)
        for cell in check_cells(document):
            about = cell["metadata"]["nbgrader"]
            points = maxima.get((notebook.stem, about["grade_id"]))
            if points is None:
                continue
            verdict = verdict_in(cell)
            grade = gradebook.find_grade(about["grade_id"], notebook.stem, assignment, student)
            if verdict is None and grade.auto_score and about.get("points") != points:
                unread.append(about["grade_id"].removeprefix(folder.CHECK_PREFIX))
                continue
            about["points"] = points
            if verdict is None:
                continue
            cell["outputs"] = [dict(output) for output in outputs_of(verdict, points)]
            score = points_of(verdict, points)
            if grade.auto_score is not None and grade.auto_score != score:
                grade.auto_score = score
                grade.needs_manual_grade = bool(grade.needs_manual_grade or grade.manual_score is not None)
        if json.dumps(document) != before:
            write_in_one_step(notebook, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    gradebook.db.commit()
    return unread


def _penalties(api: Any, gradebook: Any, assignment: str, student: str) -> None:
    """As `AssignLatePenalties` does when a submission is graded."""
    from nbgrader.preprocessors import AssignLatePenalties

    policy = AssignLatePenalties(config=api.config)
    policy.log = logging.getLogger(__name__)
    policy.init_plugin()
    submission = gradebook.find_submission(assignment, student)
    for notebook in submission.notebooks:
        notebook.late_submission_penalty = None
        late = submission.total_seconds_late
        penalty = policy.plugin_inst.late_submission_penalty(student, notebook.score, late) if late > 0 else None
        if penalty is not None:
            notebook.late_submission_penalty = min(max(0.0, penalty), notebook.score)
    gradebook.db.commit()
