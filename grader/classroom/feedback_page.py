"""Feedback pages: the graded notebook, under a summary of the student's chapter that says what to do next."""

from __future__ import annotations

import functools
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup
from traitlets import Unicode

from grader.authoring.offline_page import OfflinePage
from grader.classroom import course_folder as folder
from grader.classroom.term.board_names import published_name
from grader.exercises import EXERCISES
from grader.words import points

TEMPLATES = Path(__file__).parent / "templates"


class FeedbackPage(OfflinePage):
    """nbgrader's exporter for feedback, in this project's template. `chapter` is the HTML of the summary."""

    chapter = Unicode("").tag(config=True)

    def from_notebook_node(  # type: ignore[override]
        self, nb: Any, resources: dict[str, Any] | None = None, **kw: Any
    ) -> tuple[str, dict[str, Any]]:
        """The page's text, and nbconvert's resources."""
        return super().from_notebook_node(nb, {**(resources or {}), "chapter": Markup(self.chapter)}, **kw)

    def default_filters(self) -> Any:
        """nbconvert's filters, and those of the template."""
        yield from super().default_filters()  # type: ignore[no-untyped-call]
        yield "points", _points
        yield "graded_name", _graded_name


@dataclass(frozen=True)
class _Row:
    name: str
    points: float
    most: float
    advice: str
    has_page: bool


def chapter_summary(api: Any, assignment: str, student: str, without_grades: Collection[str]) -> Markup:
    """The HTML of a student's points in an assignment, notebook by notebook, and the student's name on the boards.

    `without_grades`: the notebooks that were not handed in or cannot be read, by name.
    """
    from nbgrader.api import MissingEntry

    with api.gradebook as gradebook:
        most = {each.name: each.max_score for each in gradebook.find_assignment(assignment).notebooks}
        try:
            graded = {each.name: each for each in gradebook.find_submission(assignment, student).notebooks}
        except MissingEntry:
            graded = {}
        rows, penalty = [], 0.0
        for name in sorted(most):
            own = None if name in without_grades else graded.get(name)
            lost = float(own.late_submission_penalty or 0.0) if own is not None else 0.0
            got = float(own.score) - lost if own is not None else 0.0
            penalty += lost
            advice = _advice(own, name in without_grades)
            rows.append(_Row(name, got, most[name], advice, own is not None or name in without_grades))
    return Markup(
        _template().render(
            assignment=assignment, rows=rows, penalty=penalty, total=sum(row.points for row in rows),
            most=sum(row.most for row in rows), board_name=published_name(Path(api.coursedir.root), student),
        )
    )  # fmt: skip


def _advice(own: Any | None, without_grades: bool) -> str:
    """The next step for a notebook; `own` is its entry in the gradebook."""
    if without_grades or own is None:
        return "Not graded: its page says why. Hand in the notebook under this name."
    if own.needs_manual_grade:
        return "Your instructor will grade a part of it."
    if own.score >= own.max_score:
        return "Nothing: it has all points." if own.max_score else "Nothing: it has no exercises for points."
    return "Open its page: each report says what to fix first."


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["points"] = _points
    return environment.get_template("chapter.html.j2")


def _points(value: float | None) -> str:
    return points(float(value or 0.0))


def _graded_name(grade_id: str) -> str:
    """The title of the exercise of a check cell; other cells keep their grade_id."""
    exercise = EXERCISES.get(grade_id.removeprefix(folder.CHECK_PREFIX))
    return exercise.title if exercise is not None else grade_id
