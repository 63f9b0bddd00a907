"""nbgrader's gradebook, this judge's scores: a preprocessor in the place of `Execute`, and one that saves them."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbconvert.exporters.exporter import ResourcesDict
from nbformat.notebooknode import NotebookNode
from nbgrader import utils
from nbgrader.preprocessors import NbGraderPreprocessor, SaveAutoGrades
from traitlets import Bool, Enum

from grader import submission
from grader.classroom.released_cells import node
from grader.errors import GraderError, JudgeStopped, UnusableExercise, UnusableSubmission
from grader.exercises import EXERCISES, found
from grader.verdict import Verdict

if TYPE_CHECKING:
    from grader.judge.service import Judge

CHECK_PREFIX = "check-"  # the check cell of exercise `softmax` has the grade_id `check-softmax`

# Keys in the conversion's resources, of grade_ids that a person has to look at.
_NOT_GRADED = "grader_not_graded"
_TO_REVIEW = "grader_to_review"


class JudgeCells(NbGraderPreprocessor):  # type: ignore[misc]
    """First of `Autograde.autograde_preprocessors`: runs nothing of the notebook, has its solution cells judged.

    Its exporter is `grader.classroom.released_cells.HandedInExporter`.

    Each check cell gets a report and, as nbgrader's `determine_grade` wants it, a number as `execute_result`. A cell
    that could not be judged gets 0 and is marked for `SaveVerdicts`, which flags it for manual grading.
    """

    device = Enum(
        ("auto", "cuda", "simulator"),
        "auto",
        help="Where submissions run: on the GPU, in the simulators, or on the GPU where there is one.",
    ).tag(config=True)
    timed = Bool(True, help="Whether speed gates are measured; without, only correctness gives points.").tag(
        config=True
    )
    kernels = Bool(False, help="Whether findings also rest on the kernels that ran: some seconds more each.").tag(
        config=True
    )
    sandbox = Bool(True, help="Without it a submission can do on this machine whatever you can.").tag(config=True)

    @property
    def judge(self) -> Judge:
        """This process's judge, as it is configured here."""
        from grader.judge.sandbox import must_be_caged
        from grader.judge.service import shared_judge

        if self.sandbox:
            must_be_caged()
        return shared_judge(self.device, self.sandbox)

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        """Return the notebook with all outputs cleared and a report and a score in each graded cell."""
        not_graded: list[str] = []
        resources[_TO_REVIEW] = []
        if "root" in self.config.CourseDirectory:  # as the course's nbgrader_config.py sets it
            found.use(Path(self.config.CourseDirectory.root))
        for cell in nb.cells:
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
        for cell in nb.cells:
            if cell.cell_type != "code" or not utils.is_grade(cell) or utils.is_solution(cell):
                continue  # written answers: nbgrader has a person grade them
            reason = self._grade(cell, resources)
            if reason:
                not_graded.append(cell.metadata.nbgrader.grade_id)
                cell.outputs = [_note("Not graded", reason), _score(0.0)]
                self.log.error("%s: not graded: %s", cell.metadata.nbgrader.grade_id, reason)
        resources[_NOT_GRADED] = not_graded
        return nb, resources

    def _grade(self, cell: NotebookNode, resources: ResourcesDict) -> str:
        """Write report and score into the cell; return why it could not be graded, or nothing.

        What is judged is the file as it was handed in, as by `grader grade`: the notebook at hand is made for showing.
        """
        grade_id = cell.metadata.nbgrader.grade_id
        try:
            exercise = EXERCISES.get(grade_id.removeprefix(CHECK_PREFIX)) if grade_id.startswith(CHECK_PREFIX) else None
        except UnusableExercise as error:
            return str(error)
        if exercise is None:
            return f"{grade_id!r} is not a check cell of an exercise that the grader knows; a person has to grade it."
        points = float(cell.metadata.nbgrader.points)
        try:
            notebook = f"{resources['nbgrader']['notebook']}.ipynb"
            handed_in = submission.from_notebook(self.parent.handed_in, exercise.id, notebook)
            verdict = replace(self._verdict(handed_in), judged=handed_in.note)
            score = _points(verdict, points)
            cell.outputs = [_report(verdict), _score(score)]
            cell.metadata["grader"] = node(verdict=_plain_json(verdict.to_dict()))
            if verdict.failure is not None and verdict.failure.kind == "implausible":
                resources[_TO_REVIEW].append(grade_id)
        except UnusableSubmission as error:
            cell.outputs = [_note(f"{exercise.title}: 0 of {points:g} points", str(error)), _score(0.0)]
            self.log.warning("%s: 0 of %g points: %s", grade_id, points, error)
        except GraderError as error:
            return f"{error} Autograde again once that is mended."
        except Exception as error:  # whatever it is, it must not delete the student's output
            self.log.exception("%s: the grader failed", grade_id)
            return f"The grader failed ({type(error).__name__}); its log says where. Autograde again or grade by hand."
        else:
            self.log.info("%s: %g of %g points (%s)", grade_id, score, points, verdict.status)
        return ""

    def _verdict(self, handed_in: submission.Submission) -> Verdict:
        try:
            return self.judge.grade(handed_in.source, handed_in.exercise_id, timed=self.timed, kernels=self.kernels)
        except JudgeStopped as error:
            self.log.warning("%s: %s Once more, with a fresh one.", handed_in.origin, error)
            self.judge.expect([])  # it may have stopped on what it was loading ahead
            return self.judge.grade(handed_in.source, handed_in.exercise_id, timed=self.timed, kernels=self.kernels)


class SaveVerdicts(SaveAutoGrades):  # type: ignore[misc]
    """`SaveAutoGrades`, but what was not judged has no score, and waits for a person as what is held for review."""

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


def _points(verdict: Verdict, points: float) -> float:
    """The verdict's points on the scale of the check cell (an instructor may give an exercise another weight)."""
    if not (math.isfinite(verdict.points) and verdict.max_points > 0):
        raise ValueError(f"a verdict of {verdict.points} of {verdict.max_points} points")
    score = verdict.points if verdict.max_points == points else verdict.points / verdict.max_points * points
    return min(max(score, 0.0), points)


def _report(verdict: Verdict) -> NotebookNode:
    from grader.feedback import report

    return _display(report.as_html(verdict), report.as_text(verdict))


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
    return text.encode("utf-8", "replace").decode("utf-8")  # what a submission prints may hold lone surrogates


def _plain_json(data: Any) -> Any:
    """Without NaN and infinities, which are not JSON and would make the notebook unreadable elsewhere."""
    return json.loads(_writable(json.dumps(data, ensure_ascii=False)), parse_constant=lambda _: None)
