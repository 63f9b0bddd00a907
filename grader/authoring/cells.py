"""The two cells of an exercise in its notebook: the solution cell with the reference, and the check cell's points."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.authoring import percent, stubs
from grader.authoring.errors import SourceError
from grader.authoring.tree import checkout
from grader.exercise import Exercise
from grader.exercises import PACKAGED, found

__all__ = ["ExerciseCells", "exercise_cells"]


@dataclass(frozen=True)
class ExerciseCells:
    """`text` is the solution cell as its author wrote it, with the markers around the solutions.

    `points` are those of the check cell, None where the notebook has none.
    """

    text: str
    points: float | None

    @property
    def reference(self) -> str:
        """The solved cell."""
        return stubs.without_markers(self.text)

    @property
    def stub(self) -> str:
        """The cell as learners get it."""
        return stubs.without_solutions(self.text)


def exercise_cells(exercise: Exercise) -> ExerciseCells:
    """The cells of an exercise, from `source/` of the checkout, or of the course folder if the exercise is its own.

    Raises:
        MachineLacks: this is no source checkout.
        SourceError: there is no such notebook, or no such cell in it.
    """
    name = f"source/{exercise.chapter}/{exercise.notebook}"
    course = found.course()
    if exercise.id in PACKAGED or course is None:
        path = checkout(None).root / f"{name}.py"
        cells = [(cell.text, cell.nbgrader) for cell in percent.read(_read(path), path.name)]
    else:
        path = course / f"{name}.ipynb"
        cells = [("".join(cell["source"]), _nbgrader(cell)) for cell in json.loads(_read(path))["cells"]]
    by_id = {data.get("grade_id"): (text, data) for text, data in cells}
    if exercise.id not in by_id:
        raise SourceError(f"{path} has no solution cell with the grade_id {exercise.id!r}.")
    return ExerciseCells(by_id[exercise.id][0], by_id.get(f"check-{exercise.id}", ("", {}))[1].get("points"))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SourceError(f"{path} is missing: it should hold the exercise's solution cell.") from None


def _nbgrader(cell: dict[str, Any]) -> dict[str, Any]:
    data = cell["metadata"].get("nbgrader", {})
    return data if isinstance(data, dict) else {}
