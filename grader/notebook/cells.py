"""Finds the exercise that a function solves, and the text of the notebook cell that defines it."""

from __future__ import annotations

import functools
import inspect
import linecache
import os
import re
import sys
from dataclasses import dataclass, replace
from typing import Any

from grader.errors import UnusableSubmission
from grader.exercise import Exercise
from grader.exercises import EXERCISES, find
from grader.submission import Submission, from_source
from grader.submission.solution_cell import Cell, judged_cell, parsed

_GRADE_A_FILE = "To grade a file, run `grader check FILE` in a terminal."


@dataclass(frozen=True)
class Found:
    """The text of a cell, with its number as in `In [3]`; `error` is why Python could not parse it, as one clause."""

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
        UnusableSubmission: it is neither a string nor a function.
    """
    if isinstance(target, str):
        return find(target)
    if not callable(target):
        raise UnusableSubmission(
            f"Name an exercise by its function or its id, as in `check(softmax)`; this is of type "
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
    """The cell to judge for an exercise: all of its text, imports included.

    `judged_cell` has the rule, as for a notebook that is handed in; the cells are those that were run, in that order. A
    cell whose run ended in an error counts too, even a syntax error, although the function is that of an earlier run.

    Raises:
        UnknownExercise: no exercise has this id, or a function of this name.
        UnusableSubmission: the cell cannot be found, or nothing in it can be graded; the message says why.
    """
    exercise = exercise_of(target)
    running = shell()
    if running is None:
        raise UnusableSubmission(f"`check` grades a cell of a notebook, and this is not a notebook. {_GRADE_A_FILE}")
    name = exercise.entry
    inputs = _inputs(running)
    cells = [Cell(f"In [{number}]", raw) for number, (_, raw) in enumerate(inputs)]
    judged = judged_cell(cells, exercise)
    if isinstance(target, str) and name not in running.user_ns:
        if judged is None or judged.is_python:
            raise UnusableSubmission(
                f"Nothing named `{name}` is defined in this notebook: run the cell that defines it, then check again."
            )
        return _found(judged, cells, exercise)
    text = _text_of(running.user_ns[name] if isinstance(target, str) else target, exercise)
    if judged is not None:
        return _found(judged, cells, exercise)
    numbers = [number for number, (run, _) in enumerate(inputs) if run.rstrip("\n") == text.rstrip("\n")]
    if numbers:
        return _found(cells[numbers[-1]], cells, exercise)  # the text before IPython rewrote its magics
    return Found(from_source(text, exercise.id, f"the cell of `{name}`"))


def _found(cell: Cell, cells: list[Cell], exercise: Exercise) -> Found:
    submission = from_source(cell.source, exercise.id, f"the cell of `{exercise.entry}`")
    number = cells.index(cell)
    last = [each for each in cells[number + 1 :] if each.defines(exercise.entry) and each.is_stub]
    if last:
        note = f"Judged: {cell.name}, as {last[-1].name}, which you ran last, is still the stub."
        submission = replace(submission, note=note)
    return Found(submission, number, _syntax_error(cell.source))


def _syntax_error(source: str) -> str:
    try:
        parsed(source)
    except SyntaxError as error:
        where = f" in line {error.lineno}" if error.lineno else ""
        return f"a syntax error{where}: {error.msg}"
    except (ValueError, RecursionError, MemoryError):
        pass  # the judge reports it
    return ""


def _text_of(target: Any, exercise: Exercise) -> str:
    """The text that a function was compiled from, as IPython compiled it."""
    name = exercise.entry
    code = getattr(_unwrapped(target), "__code__", None)
    if code is None:
        raise UnusableSubmission(
            f"`{name}` is a {type(target).__name__}, not a function that a cell defines: write `def {name}"
            f"({', '.join(exercise.parameters)})`, run the cell, and check again."
        )
    filename = code.co_filename
    entry: Any = linecache.cache.get(filename)
    in_memory = entry is not None and len(entry) == 4 and entry[1] is None  # IPython's cells have no modification time
    if not in_memory and os.path.exists(filename):  # JupyterLab's debugger also writes cells to files
        raise UnusableSubmission(
            f"`{name}` comes from {filename}, and `check` grades the notebook's cell that defines it. {_GRADE_A_FILE}"
        )
    if not in_memory:
        raise UnusableSubmission(
            f"The text of the cell that defines `{name}` is not known: run a cell that holds only its imports and "
            "definitions, without `%%time` or `exec`, then check again."
        )
    return "".join(entry[2])


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


def _inputs(running: Any) -> list[tuple[str, str]]:
    """The cells that were run, by number, as Python received them and as they were typed; empty without a history."""
    history = getattr(running, "history_manager", None)
    if history is None:
        return []
    both = zip(history.input_hist_parsed, history.input_hist_raw, strict=False)
    return [(str(run), str(raw)) for run, raw in both]


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
