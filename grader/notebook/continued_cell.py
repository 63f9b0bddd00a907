"""Fill an exercise's cell with the learner's cell of an earlier exercise, so that only what changes is written."""

from __future__ import annotations

import re

from grader.errors import UnusableSubmission
from grader.notebook.cells import exercise_of, shell, solution_of
from grader.submission.solution_cell import Cell

__all__ = ["continued_text", "replace_cell"]


def continued_text(earlier: object, exercise: object) -> str:
    """Return the text of the cell that solves `earlier`, with the name of the function that `exercise` asks for.

    Raises:
        UnknownExercise: no exercise has this id, or a function of this name.
        UnusableSubmission: the earlier exercise is not written yet, or its cell cannot be found.
    """
    before, after = exercise_of(earlier), exercise_of(exercise)
    found = solution_of(earlier)
    if Cell("", found.submission.source).is_stub:
        raise UnusableSubmission(f"`{before.entry}` is not written yet: write it first, then continue from it here.")
    call = re.compile(r"^# *continue_from\(.*\n", re.MULTILINE)
    return re.sub(rf"\b{re.escape(before.entry)}\b", after.entry, call.sub("", found.submission.source))


def replace_cell(text: str) -> None:
    """Put `text` in place of the cell that runs, in a notebook that can do so; print it elsewhere."""
    running = shell()
    if running is not None and hasattr(running, "kernel"):
        running.set_next_input(text, replace=True)
    else:
        print(text)
