"""Checks of a submission's text before it runs: is there a function of the right name and signature?"""

from __future__ import annotations

import ast
import re

from grader.exercise import MAX_SOURCE_BYTES, Exercise
from grader.submission.solution_cell import bindings, parsed
from grader.verdict import Failure

_ASKS = (
    "It works on a stream of its own: does that wait for the current one, on which the inputs arrive? "
    "`stream.wait_stream(torch.cuda.current_stream())` comes before the first launch on it."
)
# Streams that do not wait for the default stream implicitly.
_MADE = re.compile(r"\btorch\.cuda\.Stream\(|non_blocking=True\)|StreamNonBlocking|getStreamFromPool")
# `current_stream().wait_stream(s)` is the opposite direction.
_WAITS = re.compile(r"(?<!current_stream\(\)\.)wait_stream|wait_event|StreamWaitEvent|StreamWaitValue")

_MOST_CHARACTERS = 200  # of a quoted signature


def waits_for_nobody(source: str) -> str:
    """Return a question if the text creates a stream that waits for none, else "". A hint: comments can fool it."""
    return _ASKS if _MADE.search(source) and not _WAITS.search(source) else ""


def refuse(source: str, exercise: Exercise) -> Failure | None:
    """Return why the source cannot be graded, or None."""
    try:
        return _refuse(source, exercise)
    except (RecursionError, MemoryError):
        return _unusable("The submission is nested too deeply to be read.")
    except UnicodeEncodeError as error:
        return _unusable(f"The submission holds text that is not valid Unicode ({error.reason}).")
    except Exception as error:  # from Python's own parser; it must not end another submission's grading
        return _unusable(f"The submission cannot be read ({type(error).__name__}).")


def _refuse(source: str, exercise: Exercise) -> Failure | None:
    if not source.strip():
        return _unusable("The submission is empty.")
    if len(source.encode()) > MAX_SOURCE_BYTES:
        limit = f"{MAX_SOURCE_BYTES // 1000} kB"
        return _unusable(f"The submission is larger than {limit}; a solution is one cell of text.")
    try:
        tree = parsed(source)
    except SyntaxError as error:
        return _unusable(f"Syntax error in line {error.lineno}: {error.msg}.", error.lineno)
    except ValueError as error:
        return _unusable(f"Python cannot read the submission: {error}.")
    defined = None
    for name, statement in bindings(tree):
        if name in (exercise.entry, "*"):
            defined = statement  # the last one counts
    wanted = f"{exercise.entry}({', '.join(exercise.parameters)})"
    if defined is None:
        return _unusable(f"The cell does not define {exercise.entry!r}; it must define {wanted} at its top level.")
    if isinstance(defined, ast.FunctionDef) and not _accepts(defined.args, len(exercise.parameters)):
        theirs = ast.unparse(_without_values(defined.args))
        theirs = theirs if len(theirs) <= _MOST_CHARACTERS else theirs[: _MOST_CHARACTERS - 1] + "…"
        return _unusable(f"The signature is {exercise.entry}({theirs}); the grader calls {wanted}.", defined.lineno)
    return None


def _unusable(message: str, line: int | None = None) -> Failure:
    return Failure("unusable", message, line)


def _without_values(arguments: ast.arguments) -> ast.arguments:
    """Replace default values by `...` and drop annotations, which may be long or break `ast.unparse`."""
    for each in ast.walk(arguments):
        if isinstance(each, ast.arg):
            each.annotation = None
    some = ast.Constant(...)
    arguments.defaults = [some] * len(arguments.defaults)
    arguments.kw_defaults = [default and some for default in arguments.kw_defaults]
    return arguments


def _accepts(arguments: ast.arguments, count: int) -> bool:
    positional = len(arguments.posonlyargs) + len(arguments.args)
    required = positional - len(arguments.defaults)
    keyword_only = sum(default is None for default in arguments.kw_defaults)
    return required <= count <= (count if arguments.vararg else positional) and not keyword_only
