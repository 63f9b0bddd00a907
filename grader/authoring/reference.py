"""The reference solutions, read from `source/` without Jupyter: also on a machine that only has a GPU."""

from __future__ import annotations

from pathlib import Path

from grader.authoring import percent, stubs
from grader.authoring.errors import SourceError
from grader.authoring.tree import checkout
from grader.exercises import find

__all__ = ["solution", "unsolved"]


def solution(exercise_id: str, *, root: Path | None = None) -> str:
    """The text of the exercise's solution cell, as a learner who has solved it would have it.

    Raises:
        UnknownExercise: there is no such exercise.
        MachineLacks: this is no source checkout.
        SourceError: its source notebook has no such cell.
    """
    return stubs.without_markers(_cell(exercise_id, root))


def unsolved(exercise_id: str, *, root: Path | None = None) -> str:
    """The text of the same cell as learners get it, with stubs. Raises as `solution` does."""
    return stubs.without_solutions(_cell(exercise_id, root))


def _cell(exercise_id: str, root: Path | None) -> str:
    exercise = find(exercise_id)
    tree = checkout(root)
    path = tree.source / exercise.chapter / f"{exercise.notebook}.py"
    name = path.relative_to(tree.root).as_posix()
    if not path.is_file():
        raise SourceError(f"{name} is missing: the solution of {exercise_id!r} belongs there.")
    for cell in percent.read(path.read_text(encoding="utf-8"), name):
        if cell.nbgrader.get("solution") and cell.nbgrader.get("grade_id") == exercise_id:
            return cell.text
    raise SourceError(f"{name} has no solution cell with the grade_id {exercise_id!r}.")
