"""From a wrong output to sentences that name the bug: what differs, where, and the question that leads to the cause."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from grader.exercise import Case, Exercise
from grader.feedback.cuda_errors import CPP, CUDA, CUPY
from grader.feedback.facts import Facts
from grader.feedback.python_errors import COMPILER, NUMBA, OPERATOR, PYTHON, Advice, Meaning
from grader.feedback.questions import OUTSIDE, WRONG, ask
from grader.feedback.triton_errors import PRODUCTS, TRITON
from grader.verdict import Failure, Mismatch
from grader.words import LINE_CHARACTERS, clean, count, index, number, plural

__all__ = [
    "MEANINGS",
    "Advice",
    "Explained",
    "Meaning",
    "describe",
    "explain",
    "explained",
    "message_of",
    "sentences",
    "told",
]


# What the errors of Triton, CUDA, C++, Numba and PyTorch mean here, and what to do: a table, the first match counts.
#
# The patterns were taken from the messages of triton 3.7.1 (its compiler and its interpreter), g++ 12, NVIDIA's compiler
# 13, numba 0.68 and torch 2.13; tests/feedback/error_texts.py keeps one of each.

MEANINGS: tuple[Meaning, ...] = OPERATOR + PRODUCTS + TRITON + CUPY + CUDA + CPP + NUMBA + PYTHON + COMPILER


def explain(text: str, line: str = "") -> Advice | None:
    """The advice for an error's text, or None where the table knows nothing of it.

    `line` is the submission's line that raised it, if that is known.
    """
    return next((advice for meaning in MEANINGS if (advice := meaning.advice(text, line)) is not None), None)


# From a failure to what a learner reads: a title, the message without its wrapping, what it means and what to do.


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


# From a wrong output to sentences that name the bug: what differs, where, and the question that leads to the cause.


def describe(mismatch: Mismatch, case: Case | None = None, exercise: Exercise | None = None) -> str:
    """All that can be said of a mismatch, in a few sentences; `case` and `exercise` sharpen the question at the end."""
    return " ".join(sentences(mismatch, case, exercise))


def sentences(mismatch: Mismatch, case: Case | None = None, exercise: Exercise | None = None) -> tuple[str, ...]:
    """The sentences of `describe`: the known bug first, then the facts, then one question for each kind of fault."""
    return told(Facts(mismatch, case, exercise))


def told(facts: Facts) -> tuple[str, ...]:
    """The same from all that is known: the text of the submission and its other wrong cases sharpen the questions."""
    mismatch = facts.mismatch
    found = [mismatch.suspect] if mismatch.suspect else []
    if mismatch.wrong:
        found.append(_differ(facts))
        if 0 < mismatch.unwritten < mismatch.wrong:
            found.append(f"{_of(mismatch.unwritten, 'these')} {_were(mismatch.unwritten)} never written.")
        if 0 < mismatch.not_finite < mismatch.wrong:
            found.append(f"{_of(mismatch.not_finite, 'these')} {_are(mismatch.not_finite)} NaN or infinite.")
        if not mismatch.suspect:
            found.append(ask(facts, WRONG))
    if mismatch.outside:
        found.append(_wrote_outside(facts))
        if not facts.padded:  # the stride is already asked for
            found.append(ask(facts, OUTSIDE))
    return tuple(sentence for sentence in found if sentence)


def _differ(facts: Facts) -> str:
    m, place = facts.mismatch, facts.place
    if facts.answer:
        others = "" if m.total == 1 else f" {_of(m.wrong, str(m.total))} answers {_are(m.wrong)} wrong."
        return f"`{facts.answer}`: got {number(m.got)}, expected {number(m.expected)}.{others}"
    if m.total == 1:
        who = f"The only element of `{m.output}`"
    elif m.wrong == m.total:
        who = f"All {count(m.total)} elements{facts.of_which}"
    else:
        who = f"{count(m.wrong)} of {count(m.total)} elements{facts.of_which}"
    one = m.wrong == 1
    if facts.unwritten:
        what = " was never written" if one else " were never written"
        return f"{who}{what}{_comma(place.phrase)}{_first(m, values=False) if place.kind != 'mid_row' else ''}."
    if m.not_finite == m.wrong:
        what = " is NaN or infinite where a finite value is expected"
        what = what if one else what.replace(" is ", " are ", 1)
        return f"{who}{what}{_comma(place.phrase)}{_first(m)}."
    what = " differs" if one else " differ"
    return f"{who}{what}{_comma(place.phrase)}{_first(m)}."


def _comma(phrase: str) -> str:
    return f", {phrase}" if phrase else ""


def _first(m: Mismatch, values: bool = True) -> str:
    if m.first_index is None:
        return ""
    said = f": got {number(m.got)}, expected {number(m.expected)}" if values and m.got != "never written" else ""
    if m.total == 1:
        return said
    where = f"at {index(m.first_index)}" if m.wrong == 1 else f"first at {index(m.first_index)}"
    return f"; {where}{said}"


def _wrote_outside(facts: Facts) -> str:
    m = facts.mismatch
    where = {
        "before": f"before the start of `{m.output}`",
        "between": f"between the rows of `{m.output}`",
        "beyond": f"between the rows and past the end of `{m.output}`",
        "after": f"past the end of `{m.output}`",
        "around": f"outside of `{m.output}`",
    }[facts.side]
    also = "The kernel also wrote" if m.wrong else "Every element is right, but the kernel wrote"
    return f"{also} {plural(m.outside, 'element')} {where}."


def _of(n: int, whom: str) -> str:
    return f"{count(n)} of {whom}"


def _were(n: int) -> str:
    return "was" if n == 1 else "were"


def _are(n: int) -> str:
    return "is" if n == 1 else "are"
