"""nbgrader preprocessors that grade with the judge instead of running the notebook, and save its scores."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from nbconvert.exporters.exporter import ResourcesDict
from nbformat.notebooknode import NotebookNode
from nbgrader import utils
from nbgrader.preprocessors import NbGraderPreprocessor, SaveAutoGrades
from traitlets import Bool, Enum

from grader import submission
from grader.classroom.course_folder import CHECK_PREFIX
from grader.classroom.grading import judging
from grader.classroom.grading.judging import Judging
from grader.classroom.grading.verdict_store import Task, VerdictStore, device_class
from grader.classroom.grading.workers import Device, ThisProcess
from grader.classroom.released_cells import node
from grader.errors import GraderError, UnusableExercise, UnusableSubmission
from grader.exercises import EXERCISES, found
from grader.verdict import Verdict
from grader.words import in_points

# Keys in the conversion's resources, for the grade_ids that need manual grading.
_NOT_GRADED = "grader_not_graded"
_TO_REVIEW = "grader_to_review"


class JudgeCells(NbGraderPreprocessor):  # type: ignore[misc]
    """First of `Autograde.autograde_preprocessors`: sends the solution cells to the judge and runs nothing itself.

    Each check cell gets a report and a number as `execute_result`, which nbgrader's `determine_grade` reads. If a cell
    could not be judged, or only a GPU can, it gets 0 and `SaveVerdicts` flags it for manual grading.
    """

    device = Enum(
        ("auto", "cuda", "simulator"),
        "auto",
        help="Where submissions run: on the GPU, in the simulators, or on the GPU if there is one.",
    ).tag(config=True)
    timed = Bool(True, help="Whether to measure speed; if not, only correctness gives points.").tag(config=True)
    kernels = Bool(False, help="Whether to inspect the kernels that ran, too: a few seconds per submission.").tag(
        config=True
    )
    sandbox = Bool(True, help="Whether to run submissions in a sandbox; without it they can do whatever you can.").tag(
        config=True
    )

    practice_clock = Bool(
        False, help="Whether times count that a submission can falsify, on a machine that shares no GPU memory."
    ).tag(config=True)

    @property
    def judging(self) -> Judging:
        """The judging of the command that runs, else this process's judge with the course's store."""
        if (running := judging.current()) is not None:
            return running
        root = self.config.CourseDirectory.root if "root" in self.config.CourseDirectory else "."
        device: Device = self.device  # type: ignore[assignment]
        store, workers = VerdictStore(Path(root), self.sandbox), ThisProcess(device, self.sandbox)
        return judging.Judging(store, workers, device_class(device), practice_clock=self.practice_clock)

    def task(self, source: str, exercise_id: str) -> Task:
        """A text to judge in the way that the course's settings ask for."""
        return Task(source, exercise_id, timed=self.timed, kernels=self.kernels)

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        """Return the notebook with all outputs cleared and a report and a score in each graded cell."""
        resources[_NOT_GRADED], resources[_TO_REVIEW] = [], []
        if "root" in self.config.CourseDirectory:  # set by the course's nbgrader_config.py
            found.use(Path(self.config.CourseDirectory.root))
        for cell in nb.cells:
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
        for cell in nb.cells:
            if cell.cell_type != "code" or not utils.is_grade(cell) or utils.is_solution(cell):
                continue  # nbgrader leaves written answers to manual grading
            reason = self._grade(cell, resources)
            if reason:
                resources[_NOT_GRADED].append(cell.metadata.nbgrader.grade_id)
                cell.outputs = [_note("Not graded", reason), _score(0.0)]
                self.log.error("%s: not graded: %s", cell.metadata.nbgrader.grade_id, reason)
        return nb, resources

    def _grade(self, cell: NotebookNode, resources: ResourcesDict) -> str:
        """Write report and score into the cell; return why it could not be graded, or an empty string.

        The judge grades the submitted file, as `grader grade` does; `nb` was rebuilt for display only.
        """
        grade_id = cell.metadata.nbgrader.grade_id
        try:
            exercise = EXERCISES.get(grade_id.removeprefix(CHECK_PREFIX)) if grade_id.startswith(CHECK_PREFIX) else None
        except UnusableExercise as error:
            return str(error)
        if exercise is None:
            return f"{grade_id!r} is not the check cell of a known exercise; grade it by hand."
        points = float(cell.metadata.nbgrader.points)
        try:
            notebook = f"{resources['nbgrader']['notebook']}.ipynb"
            handed_in = submission.from_notebook(self.parent.handed_in, exercise.id, notebook)
            verdict = replace(self.judging.verdict(self.task(handed_in.source, exercise.id)), judged=handed_in.note)
            score = points_of(verdict, points)
            cell.outputs = outputs_of(verdict, points)
            cell.metadata["grader"] = node(verdict=_plain_json(verdict.to_dict()))
            kind = verdict.failure.kind if verdict.failure is not None else ""
            if kind == "implausible":
                resources[_TO_REVIEW].append(grade_id)
            elif kind == "not_simulated":  # a GPU can judge it
                resources[_NOT_GRADED].append(grade_id)
        except UnusableSubmission as error:
            cell.outputs = [_note(f"{exercise.title}: 0 of {in_points(points)}", str(error)), _score(0.0)]
            self.log.warning("%s: 0 of %g points: %s", grade_id, points, error)
        except GraderError as error:
            return f"{error} Fix it, then autograde again."
        except Exception as error:  # no failure may lose the student's other results
            self.log.exception("%s: the grader failed", grade_id)
            return f"The grader failed ({type(error).__name__}); see its log. Autograde again or grade by hand."
        else:
            self.log.info("%s: %g of %g points (%s)", grade_id, score, points, verdict.status)
        return ""


class SaveVerdicts(SaveAutoGrades):  # type: ignore[misc]
    """Saves scores. Cells that were not judged get none; they and those held for review need manual grading."""

    def _add_score(self, cell: NotebookNode, resources: ResourcesDict) -> None:
        super()._add_score(cell, resources)
        grade_id = cell.metadata.nbgrader.grade_id
        not_graded = grade_id in (resources.get(_NOT_GRADED) or ())
        if not not_graded and grade_id not in (resources.get(_TO_REVIEW) or ()):
            return
        grade = self.gradebook.find_grade(grade_id, self.notebook_id, self.assignment_id, self.student_id)
        if not_graded:
            grade.auto_score = None
        grade.needs_manual_grade = True
        self.gradebook.db.commit()


def points_of(verdict: Verdict, points: float) -> float:
    """The verdict's points on the scale of the check cell, whose weight an instructor may have changed."""
    if not (math.isfinite(verdict.points) and verdict.max_points > 0):
        raise ValueError(f"a verdict of {verdict.points} of {in_points(verdict.max_points)}")
    score = verdict.points if verdict.max_points == points else verdict.points / verdict.max_points * points
    return min(max(score, 0.0), points)


def outputs_of(verdict: Verdict, points: float) -> list[NotebookNode]:
    """A check cell's outputs: the report, on the cell's scale, and the score that nbgrader reads."""
    from grader.feedback import report

    score = points_of(verdict, points)
    shown = verdict if verdict.max_points == points else verdict.on_scale(points)
    return [_display(report.as_html(shown), report.as_text(shown)), _score(score)]


def _note(title: str, sentence: str) -> NotebookNode:
    from grader.feedback.report import note

    return _display(note(title, sentence), f"{title}. {sentence}")


def _display(markup: str, text: str) -> NotebookNode:
    data = node(**{"text/html": _writable(markup), "text/plain": _writable(text)})
    return node(output_type="display_data", data=data, metadata=node())


def _score(points: float) -> NotebookNode:
    data = node(**{"text/plain": repr(float(points))})
    return node(output_type="execute_result", execution_count=None, data=data, metadata=node())


def _writable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")  # a submission's output may have lone surrogates


def _plain_json(data: Any) -> Any:
    """The data without NaN and infinities, which are not JSON and would make the notebook unreadable elsewhere."""
    return json.loads(_writable(json.dumps(data, ensure_ascii=False)), parse_constant=lambda _: None)
