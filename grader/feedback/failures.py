"""From a failure to what a learner reads: a title, the message without its wrapping, what it means and what to do."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from grader.exercise import Exercise
from grader.feedback.meanings import explain
from grader.feedback.words import LINE_CHARACTERS, clean
from grader.verdict import Failure

__all__ = ["Explained", "explained", "message_of"]


@dataclass(frozen=True)
class Explained:
    """`message` is the stranger's own (the submission's or a compiler's) where `foreign`, else ours."""

    title: str
    message: str
    foreign: bool
    line: int | None = None
    meaning: str = ""
    advice: str = ""
    detail: str = ""
    diagnosed: bool = False  # the cause is known, not just the kind


@dataclass(frozen=True)
class _Kind:
    title: str
    foreign: bool
    meaning: str = ""
    advice: str = ""


_KINDS = {
    "unusable": _Kind("Nothing could be graded", False, advice="Mend the cell, run it, and check again."),
    "not_written": _Kind(
        "Not written yet",
        False,
        advice="Replace the placeholder with your code, run the cell, and check again.",
    ),
    "compile": _Kind("It does not compile", True),
    "exception": _Kind("It raised an exception", True),
    "crash": _Kind(
        "It crashed",
        False,
        "Your notebook is not affected: the cell ran in a process of its own.",
        "Check every index against the bounds before it is used: a mask in Triton, an `if` in CUDA C++.",
    ),
    "illegal_access": _Kind(
        "It accessed memory outside of its buffers",
        False,
        "A kernel read or wrote memory that is not its own, or wrote to an input; it was stopped there.",
        "Check every index against the bounds before it is used: a mask in Triton, an `if` in CUDA C++.",
    ),
    "timeout": _Kind(
        "It did not end in time",
        False,
        "Most often a loop never ends; sometimes a block of threads waits for one that has already returned.",
        "Does every loop's counter move towards its end, and does every thread reach each `__syncthreads()`?",
    ),
    "limit": _Kind(
        "It used more than it may",
        False,
        "Memory, processes, files and output are limited, so that one submission cannot take them from the next.",
        "Take what this exercise needs and no more: no large buffers of your own, no processes, little output.",
    ),
    "implausible": _Kind(
        "Held for review",
        False,
        "No GPU moves its data or computes faster than that, so this time cannot be that of the whole work. The "
        "judge may be mistaken, too: this is for a person to look at.",
        "Does each call compute every element anew, from the inputs that it is given? If so, check again, and show "
        "your instructor this report.",
    ),
    "wrong_answer": _Kind("The output is wrong", False),
}
_ENDLESS_TRITON = "Most often a loop never ends, or the grid has a program for every element in place of every block."
_TIMEOUT_TRITON = "Does every loop's counter move towards its end, and is the grid as large as `triton.cdiv` makes it?"
_ENDED_ITSELF = "ended itself"
_WRAPPED = re.compile(r"^(?:(?:InterpreterError|CompilationError): )*(\w+)\((['\"].*['\"])\)$", re.DOTALL)


def explained(failure: Failure, exercise: Exercise | None = None, source: str = "") -> Explained:
    """What to tell of a failure. Advice that the judge gave comes before the table's, and that before the kind's.

    Errors that are worded alike are told apart by the line that failed, which is read from the cell's `source`.
    """
    kind = _KINDS[failure.kind]
    known = None
    meaning, advice = kind.meaning, kind.advice
    if failure.kind == "timeout" and exercise is not None and exercise.backend == "triton":
        meaning, advice = _ENDLESS_TRITON, _TIMEOUT_TRITON
    if failure.kind == "crash" and _ENDED_ITSELF in failure.message:
        meaning, advice = "", "A submission must return to its caller: take `exit`, `os._exit` and the like out."
    if failure.kind in ("compile", "exception", "illegal_access"):
        line = _line(source, failure.line)
        known = explain(failure.message, line) or explain(failure.detail[-2000:], line)
        if known is not None:
            meaning, advice = known.says, known.do
    return Explained(
        title=(known and known.title) or kind.title,
        message=message_of(failure),
        foreign=kind.foreign,
        line=failure.line,
        meaning=meaning,
        advice=failure.advice or advice,
        detail=_detail(failure),
        diagnosed=known is not None or bool(failure.advice),
    )


def message_of(failure: Failure) -> str:
    """The message on one line, without the wrapping of Triton's errors."""
    text = clean(failure.message, 500).strip()
    found = _WRAPPED.match(text)
    if found:
        try:
            inner = ast.literal_eval(found[2])
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):  # all of them literal_eval's
            inner = found[2][1:-1]
        text = f"{found[1]}: {inner}"
        again = _WRAPPED.match(str(inner))
        if again:
            text = f"{again[1]}: {again[2][1:-1]}"
    return " ".join(clean(text, 500).split())  # once more: what was written as an escape is one now


def _line(source: str, number: int | None) -> str:
    lines = source.split("\n")
    return lines[number - 1][:LINE_CHARACTERS] if number is not None and 1 <= number <= len(lines) else ""


def _detail(failure: Failure) -> str:
    """The traceback or the compiler's words, where they say more than the message."""
    detail = clean(failure.detail).strip()
    return "" if detail in ("", failure.message.strip()) else detail
