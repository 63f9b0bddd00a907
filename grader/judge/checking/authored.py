"""Errors of an exercise's own functions, which are for its author to fix: no submission is to blame."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator

import torch

from grader.errors import GraderError, UnusableExercise
from grader.exercise import Case

OF_THE_MACHINE = (GraderError, torch.OutOfMemoryError, torch.AcceleratorError)


@contextlib.contextmanager
def authored(what: str, case: Case) -> Iterator[None]:
    """Within this context `what`, a function of the exercise, works on `case`.

    Raises:
        UnusableExercise: it fails; the sentence has the file and the line. Errors of the GPU stay as they are.
    """
    try:
        yield
    except OF_THE_MACHINE:
        raise
    except Exception as error:
        raise UnusableExercise(f"{what} fails in the case {case.name!r}: {place_and_error(error)}") from error


def place_and_error(error: Exception) -> str:
    """The last line of an exercise that led to the error, and the error."""
    frames = traceback.extract_tb(error.__traceback__)
    own = next((each for each in reversed(frames) if "/exercises/" in each.filename), frames[-1])
    return f"{own.filename}, line {own.lineno}: {type(error).__name__}: {error}."
