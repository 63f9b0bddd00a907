"""Sentences about a wrong output or a failure: what is wrong, where, and what to look at next."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from grader.exercise import Case, Exercise
from grader.feedback.cuda_errors import CPP, CUDA, SIMULATOR
from grader.feedback.cupy_errors import CUPY
from grader.feedback.facts import Clues, Facts, clues_in
from grader.feedback.numba_errors import NUMBA
from grader.feedback.python_errors import COMPILER, OPERATOR, PYTHON, Advice, Meaning
from grader.feedback.questions import OUTSIDE, WRONG, ask
from grader.feedback.triton_errors import PRODUCTS, TRITON
from grader.verdict import Failure, Mismatch
from grader.words import LINE_CHARACTERS, clean, count, index, number, plural

# The first match counts. The patterns are from triton 3.7.1, g++ 12, CUDA 13, numba 0.68 and torch 2.13;
# tests/feedback/error_texts.py has one message for each.
MEANINGS: tuple[Meaning, ...] = SIMULATOR + OPERATOR + PRODUCTS + TRITON + CUPY + CUDA + CPP + NUMBA + PYTHON + COMPILER


def explain(text: str, line: str = "", cell: str = "") -> Advice | None:
    """The advice for an error's text, or None if the table does not know it.

    `line` is the line of the submission's `cell` that raised it, if known.
    """
    return next((advice for meaning in MEANINGS if (advice := meaning.advice(text, line, cell)) is not None), None)


@dataclass(frozen=True)
class Explained:
    """A failure in words. `message` is from the submission or a compiler if `foreign`, otherwise from the judge."""

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
    "unusable": _Kind("Nothing could be graded", False, advice="Fix the cell, run it, and check again."),
    "not_written": _Kind(
        "Not written yet", False, advice="Replace the placeholder with your code, run the cell, and check again."
    ),
    "not_simulated": _Kind(
        "Not judged here",
        False,
        advice="Check it on a machine with a GPU. Or write it without that, run the cell, and check again here.",
    ),
    "compile": _Kind("It does not compile", True),
    "exception": _Kind("It raised an exception", True),
    "crash": _Kind(
        "It crashed",
        False,
        "Your notebook is not affected: the cell ran in a separate process.",
        "Check every index against the bounds before you use it{}.",
    ),
    "illegal_access": _Kind(
        "It accessed memory outside its buffers",
        False,
        "A kernel accessed memory outside its buffers, or wrote to an input, and was stopped there.",
        "Check every index against the bounds before you use it{}.",
    ),
    "fails_on_gpu": _Kind("It is right in the simulator, but not on a GPU", False),
    "timeout": _Kind(
        "It did not finish in time",
        False,
        "Usually a loop never ends.",
        "Does every loop counter advance to its end?",
    ),
    "limit": _Kind(
        "It exceeded a limit",
        False,
        "Memory, processes, files and output are limited, so that one submission cannot take them from the next.",
        "Use only what the exercise needs: no large buffers, no extra processes, and little output.",
    ),
    "implausible": _Kind(
        "Held for review",
        False,
        "No GPU is that fast, so this time cannot include all of the work. The judge may also be mistaken, so a "
        "person will review this result.",
        "Does each call compute every element from its inputs? If so, check again, and show this report to your "
        "instructor.",
    ),
    "not_asked": _Kind("Right, but not what this exercise asks for", False),
    "wrong_answer": _Kind("The output is wrong", False),
}
_THREADS_WAIT = (
    "Usually a loop never ends. Sometimes a thread block waits for a thread that has already returned.",
    "Does every loop counter advance to its end, and does every thread reach each `{}`?",
)
_TIMEOUTS = {
    "triton": (
        "Usually a loop never ends, or there are too many small steps: one program per element, or tiles of few rows.",
        "Does every loop counter advance to its end, and does `triton.cdiv` set the size of the grid? Without a GPU, "
        "each step of each program takes milliseconds, so larger blocks and tiles take less time.",
    ),
    **{each: tuple(text.format("__syncthreads()") for text in _THREADS_WAIT) for each in ("cuda", "cupy")},
    "numba": tuple(text.format("cuda.syncthreads()") for text in _THREADS_WAIT),
}
_BOUNDS = {
    "triton": ", with a mask",
    "cuda": ", with an `if`",
    "cupy": ", with an `if`. The order of the arguments must be that of the kernel's parameters: nothing checks it",
    "numba": ", with an `if`",
}
_ENDED_ITSELF = "ended itself"
_RUNS_IN_SIMULATOR = re.compile(r"^Runs in the simulator, but .*? a GPU: ")
_WRAPPED = re.compile(r"^(?:(?:InterpreterError|CompilationError): )*(\w+)\((['\"].*['\"])\)$", re.DOTALL)


def explained(failure: Failure, exercise: Exercise | None = None, source: str = "", right: int = 0) -> Explained:
    """A failure in words. Advice from the judge comes before the table's, and that before the kind's.

    If several errors have the same text, the line that failed, from the cell's `source`, tells them apart. `right` is
    the number of cases that passed before it.
    """
    kind = _KINDS[failure.kind]
    known = None
    backend = exercise.backend if exercise else ""
    meaning, advice = kind.meaning, kind.advice.format(_BOUNDS.get(backend, ""))
    slow: tuple[str, str] | None = None
    stray: tuple[str, str] | None = None
    clues = clues_in(source, exercise.entry if exercise else "")
    if failure.kind == "timeout":
        slow = _why_slow(clues, ended=right > 0)
        meaning, advice = slow or _TIMEOUTS.get(backend, (meaning, advice))
        if failure.advice:  # a build took too long
            meaning = ""
        elif right:
            meaning = f"The smaller cases are right{'' if slow else ', so it may be slow, not endless'}. {meaning}"
    if failure.kind == "crash" and _ENDED_ITSELF in failure.message:
        meaning, advice = "", "A submission must return to its caller: remove `exit`, `os._exit` and similar calls."
    if failure.kind in ("compile", "exception", "illegal_access", "fails_on_gpu", "not_simulated"):
        line = _line(source, failure.line)
        known = explain(failure.message, line, source)
        if failure.kind == "illegal_access" and "misaligned" not in failure.detail:
            stray = clues.stray if known is None else None  # a GPU tells nothing but the kind; the cell's text may
        else:
            known = known or explain(failure.detail[-2000:], line, source)
        if known is not None:
            meaning, advice = known.says, known.do
    elif failure.kind == "crash" and _ENDED_ITSELF not in failure.message:
        stray = clues.stray
    if stray is not None:
        meaning, advice = stray
    return Explained(
        title=(known and known.title) or kind.title,
        message=message_of(failure),
        foreign=kind.foreign,
        line=failure.line,
        meaning=meaning,
        advice=failure.advice or advice,
        detail=_detail(failure),
        diagnosed=known is not None
        or slow is not None
        or stray is not None
        or bool(failure.advice)
        or failure.kind == "not_simulated",
    )


def _why_slow(clues: Clues, ended: bool) -> tuple[str, str] | None:
    """Why a kernel took too long and what to do about it, if its source tells. `ended`: it did, in other cases."""
    if clues.endless and not ended:
        test, name = clues.endless
        return (
            f"The loop `while {test}` never ends: nothing in it changes `{name}`.",
            "Is the line that should change it indented as far as the others?",
        )
    if clues.threads_in_grid:
        return (
            "The grid has two numbers, so each program runs as often as the second one says: a Triton grid counts "
            "programs and has no threads.",
            "Launch `kernel[(programs,)](…)`: one program computes a whole block.",
        )
    if clues.whole_array:
        return (
            "A block is as long as the whole array. A block's length is a power of two, and the largest is 2^20 = "
            "1048576; compiling one of that length takes minutes.",
            "Process the data in smaller blocks, with a loop or with more programs.",
        )
    if clues.one_by_one:
        return (
            "The kernel takes one element at a time: a loop loads single elements, and the kernel has no `tl.arange`.",
            "Load a whole block at once: `tl.load(x_ptr + start + tl.arange(0, BLOCK_SIZE), mask=…)`.",
        )
    return None


def message_of(failure: Failure) -> str:
    """The message on one line, without the wrapping of Triton's errors."""
    text = clean(failure.message, 500).strip()
    prefix = _RUNS_IN_SIMULATOR.match(text)
    begins, text = (prefix[0], text[prefix.end() :]) if prefix else ("", text)
    found = _WRAPPED.match(text)
    if found:
        try:
            inner = ast.literal_eval(found[2])
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):  # all from literal_eval
            inner = found[2][1:-1]
        text = f"{found[1]}: {inner}"
        again = _WRAPPED.match(str(inner))
        if again:
            text = f"{again[1]}: {again[2][1:-1]}"
    return begins + " ".join(clean(text, 500).split())  # again: an escaped sequence is a real one now


def _line(source: str, number: int | None) -> str:
    lines = source.split("\n")
    return lines[number - 1][:LINE_CHARACTERS] if number is not None and 1 <= number <= len(lines) else ""


def _detail(failure: Failure) -> str:
    """The traceback or the compiler's output, if it says more than the message."""
    detail = clean(failure.detail).strip()
    return "" if detail in ("", failure.message.strip()) else detail


def describe(mismatch: Mismatch, case: Case | None = None, exercise: Exercise | None = None) -> str:
    """The sentences about a mismatch as one text; `case` and `exercise` make the question more specific."""
    return " ".join(sentences(mismatch, case, exercise))


def sentences(mismatch: Mismatch, case: Case | None = None, exercise: Exercise | None = None) -> tuple[str, ...]:
    """The sentences about a mismatch: the known bug first, then the facts, then a question for each kind of error."""
    return sentences_from(Facts(mismatch, case, exercise))


def sentences_from(facts: Facts) -> tuple[str, ...]:
    """The same sentences from all facts, including the submission's source and its other wrong cases."""
    mismatch = facts.mismatch
    seen = "" if facts.guessed else mismatch.suspect  # by the simulator, with line and threads
    cause = seen or (facts.clues.bug if mismatch.wrong else "") or mismatch.suspect
    found = [cause] if cause else []
    if mismatch.wrong:
        found.append(_differ(facts))
        if 0 < mismatch.unwritten < mismatch.wrong:
            found.append(f"{count(mismatch.unwritten)} of these {_was(mismatch.unwritten)} never written.")
        if 0 < mismatch.not_finite < mismatch.wrong:
            found.append(f"{count(mismatch.not_finite)} of these {_is(mismatch.not_finite)} NaN or infinite.")
        if not cause:
            found.append(ask(facts, WRONG))
    if mismatch.outside:
        found.append(_wrote_outside(facts))
        if not facts.padded and (cause or not facts.wider):  # otherwise this is the question already
            found.append(ask(facts, OUTSIDE))
    return tuple(sentence for sentence in found if sentence)


def _differ(facts: Facts) -> str:
    m, place = facts.mismatch, facts.place
    if facts.answer:
        others = "" if m.total == 1 else f" {count(m.wrong)} of {plural(m.total, 'answer')} {_is(m.wrong)} wrong."
        return f"`{facts.answer}`: got {facts.said(m.got)}, expected {facts.said(m.expected)}.{others}"
    if m.total == 1:
        who = f"The only element of `{m.output}`"
    elif m.wrong == m.total:
        who = f"All {plural(m.total, 'element')}{facts.of_which}"
    else:
        who = f"{count(m.wrong)} of {plural(m.total, 'element')}{facts.of_which}"
    where = place.phrase and f", {place.phrase}"
    if facts.unwritten:
        first = _first(m, values=False) if place.kind != "mid_row" else ""
        return f"{who} {_was(m.wrong)} never written{where}{first}."
    if m.not_finite == m.wrong:
        return f"{who} {_is(m.wrong)} NaN or infinite but should be finite{where}{_first(m)}."
    return f"{who} {'differs' if m.wrong == 1 else 'differ'}{where}{_first(m)}."


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
        "around": f"outside `{m.output}`",
    }[facts.side]
    also = "The kernel also wrote" if m.wrong else "Every element is right, but the kernel wrote"
    return f"{also} {plural(m.outside, 'element')} {where}."


def _was(n: int) -> str:
    return "was" if n == 1 else "were"


def _is(n: int) -> str:
    return "is" if n == 1 else "are"
