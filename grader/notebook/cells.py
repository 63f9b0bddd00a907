"""From a function to the exercise that it solves, and to the text of the notebook cell that defines it."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import os
import re
import sys
import warnings
from dataclasses import dataclass
from typing import Any

from grader.errors import UnusableSubmission
from grader.exercise import Exercise
from grader.exercises import EXERCISES, find
from grader.submission import Submission, from_source

__all__ = ["Found", "exercise_of", "shell", "solution_of"]

_GRADE_A_FILE = "To grade a file, run `grader check FILE` in a terminal."


@dataclass(frozen=True)
class Found:
    """The text of a cell, with its number as in `In [3]`; `error` is why Python could not read it, as one clause."""

    submission: Submission
    number: int | None = None
    error: str = ""


def shell() -> Any | None:
    """The IPython that this code runs in, or None."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def exercise_of(target: object) -> Exercise:
    """The exercise whose id or function `target` is.

    Raises:
        UnknownExercise: no exercise has this id, or a function of this name.
        UnusableSubmission: it is neither a text nor a function.
    """
    if isinstance(target, str):
        return find(target)
    if not callable(target):
        raise UnusableSubmission(
            f"An exercise is named by its function or its id, as in `check(softmax)`; this is of type "
            f"{type(target).__name__}."
        )
    name = getattr(_unwrapped(target), "__name__", type(target).__name__)
    running = shell()
    bound = running.user_ns if running is not None else {}
    for exercise in EXERCISES.values():
        if exercise.entry == name or bound.get(exercise.entry) is target:
            return exercise
    return find(name)


def solution_of(target: object) -> Found:
    """The cell that defines the function, as it was run last: all of its text, imports included.

    Where that run ended in a syntax error, the function is still the one of an earlier run; what is returned then is
    the text with the error.

    Raises:
        UnknownExercise: no exercise has this id, or a function of this name.
        UnusableSubmission: the cell cannot be found, or nothing in it can be graded; the message says why.
    """
    exercise = exercise_of(target)
    running = shell()
    if running is None:
        raise UnusableSubmission(f"`check` grades the cell of a notebook, and this is none. {_GRADE_A_FILE}")
    name = exercise.entry
    if isinstance(target, str):
        if name not in running.user_ns and (broken := _unparsed(exercise, running, after=0)) is not None:
            return broken
        if name not in running.user_ns:
            raise UnusableSubmission(
                f"Nothing named `{name}` is defined in this notebook: run the cell that defines it, then check again."
            )
        target = running.user_ns[name]
    code = getattr(_unwrapped(target), "__code__", None)
    if code is None:
        raise UnusableSubmission(
            f"`{name}` is a {type(target).__name__}, not a function that a cell defines: write `def {name}"
            f"({', '.join(exercise.parameters)})`, run the cell, and check again."
        )
    text, number = _cell(code.co_filename, name, running)
    broken = _unparsed(exercise, running, after=number) if number is not None else None
    return broken or Found(from_source(text, exercise.id, f"the cell of `{name}`"), number)


def _unwrapped(target: Any) -> Any:
    """The plain function in a Triton kernel, a compiled function, a partial or a decorated one."""
    seen = 0
    while not hasattr(target, "__code__") and seen < 8:
        seen += 1
        if isinstance(target, functools.partial):
            target = target.func
        elif inspect.isroutine(getattr(target, "fn", None)):  # triton.jit
            target = target.fn
        else:
            break
    return inspect.unwrap(target) if callable(target) else target


def _unparsed(exercise: Exercise, running: Any, after: int) -> Found | None:
    """The last cell that was to define the exercise's function and is no Python, if it was run after this number."""
    parsed, raw = _inputs(running)
    for number in range(len(parsed) - 1, after, -1):
        if not re.search(rf"^\s*(?:async\s+)?def\s+{re.escape(exercise.entry)}\b", parsed[number], re.MULTILINE):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compile(parsed[number], "the cell", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        except SyntaxError as error:
            submission = from_source(raw[number], exercise.id, f"the cell of `{exercise.entry}`")
            where = f" in line {error.lineno}" if error.lineno else ""
            return Found(submission, number, f"a syntax error{where}: {error.msg}")
        except (ValueError, RecursionError, MemoryError):
            return None
        return None
    return None


def _cell(filename: str, name: str, running: Any) -> tuple[str, int | None]:
    entry: Any = linecache.cache.get(filename)
    in_memory = entry is not None and len(entry) == 4 and entry[1] is None  # IPython's cells have no time of change
    if not in_memory and os.path.exists(filename):  # JupyterLab's debugger writes cells to files, too
        raise UnusableSubmission(
            f"`{name}` comes from {filename}, and `check` grades the notebook's cell that defines it. {_GRADE_A_FILE}"
        )
    if not in_memory:
        raise UnusableSubmission(
            f"The text of the cell that defines `{name}` is not known: run a cell that holds just its imports and "
            "definitions, without `%%time` or `exec`, then check again."
        )
    text = "".join(entry[2])
    parsed, raw = _inputs(running)
    for number in range(len(parsed) - 1, -1, -1):
        if parsed[number].rstrip("\n") == text.rstrip("\n"):
            return raw[number], number  # as it was before IPython rewrote its magics
    return text, None


def _inputs(running: Any) -> tuple[list[str], list[str]]:
    """The cells that were run, by number, as Python got them and as they were written; empty without a history."""
    history = getattr(running, "history_manager", None)
    if history is None:
        return [], []
    both = list(zip(history.input_hist_parsed, history.input_hist_raw, strict=False))
    return [str(parsed) for parsed, _ in both], [str(raw) for _, raw in both]
