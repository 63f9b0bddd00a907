"""Comparison of outputs with the float64 oracle: the error budget, and where and how an output differs."""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from grader.errors import GraderError, UnusableExercise
from grader.exercise import Budget, Case, Suspect, Tensors
from grader.judge.gpu.health import out_of_memory
from grader.protocol.arena import POISON_BYTE
from grader.verdict import CaseResult, Mismatch


def within(got: Any, expected: Any, budget: Budget) -> Any:
    """Return where `got` is right, as a boolean tensor. NaN is never right, an infinity only if it is expected."""
    error = (got.double() - expected).abs()
    allowed = budget.absolute + budget.relative * expected.abs()
    return ((error <= allowed) & expected.isfinite()) | (got.double() == expected)


def _all_right(got: Any, expected: Any, budget: Budget) -> bool:
    """Whether `got` is within the budget, in few passes over memory; False if a value is not finite."""
    error = (expected - got).abs_()
    allowed = expected.abs().mul_(budget.relative).add_(budget.absolute)
    return bool(((error <= allowed) & (allowed < float("inf"))).all())


def poisoned(got: Any) -> Any:
    """Return where `got` still holds the poison. As an integer that is an ordinary value: 255, or -1."""
    raw = got.contiguous().view(torch.uint8).reshape(*got.shape, got.element_size())
    return (raw == POISON_BYTE).all(-1)


def _unwritten(got: Any, wrong: Any) -> Any:
    """Return where an element was never written. Integers count only if that explains every wrong element."""
    unwritten = poisoned(got) & wrong
    sure = got.is_floating_point() or bool((unwritten == wrong).all())
    return unwritten if sure else unwritten.zero_()


def compare(name: str, got: Any, expected: Any, budget: Budget, outside: Sequence[int] = ()) -> Mismatch | None:
    """Return how `got` differs from `expected` (same shape, float64), or None.

    `outside`: the offsets, in elements from the output's start, of writes outside it.
    """
    if not outside and _all_right(got, expected, budget):
        return None
    right = within(got, expected, budget)
    if not outside and bool(right.all()):
        return None
    shape = tuple(got.shape)
    facts: dict[str, Any] = {"output": name, "shape": shape, "total": got.numel(), "wrong": int((~right).sum())}
    if outside:
        facts |= {"outside": len(outside), "outside_first_offset": outside[0]}
    if facts["wrong"]:
        facts |= _where(got, expected, ~right)
    return Mismatch(**facts)


def _where(got: Any, expected: Any, wrong: Any) -> dict[str, Any]:
    indices = wrong.nonzero()
    first = tuple(int(i) for i in indices[0])
    error = (got.double() - expected).abs()
    finite = error[wrong & error.isfinite()]
    unwritten = _unwritten(got, wrong)
    not_finite = ~got.isfinite() & expected.isfinite() & ~unwritten
    texts = _texts(got[first], expected[first])
    return {
        "first_index": first,
        "got": "never written" if bool(unwritten[first]) else texts[0],
        "expected": texts[1],
        "region_low": tuple(int(i) for i in indices.amin(0)),
        "region_high": tuple(int(i) for i in indices.amax(0)),
        "worst_error": float(finite.max()) if finite.numel() else None,
        "unwritten": int(unwritten.sum()),
        "not_finite": int(not_finite.sum()),
        "zeros": int((wrong & (got == 0)).sum()),
    }


def suspected(got: Any, expected: Any, inputs: Tensors, suspects: Sequence[Suspect]) -> str:
    """Return the sentence of the first suspected bug that gives this output, or "". A suspect that fails is skipped."""
    double = doubled(got, expected, inputs)
    for number, suspect in enumerate(suspects, 1):
        try:
            if explains(suspect, double):
                return suspect.sentence
        except Exception as error:  # a learner's check goes on
            if _of_the_machine(error):
                raise
            print(f"Suspect {number} of this exercise fails: {_place_and_error(error)}", file=sys.stderr, flush=True)
    return ""


def doubled(got: Any, expected: Any, inputs: Tensors) -> dict[str, Any]:
    """Return what a suspect takes: the inputs, the expected output and the submission's, all as float64."""
    return {name: value.double() for name, value in inputs.items()} | {"expected": expected, "got": got.double()}


def explains(suspect: Suspect, double: Tensors) -> bool:
    """Whether the suspected bug gives this output, and not the expected one."""
    bug, expected = suspect.output(double), double["expected"]
    if bug is None or torch.isclose(bug.double(), expected, rtol=1e-3, atol=1e-7).all():
        return False
    return bool(torch.isclose(double["got"], bug.double(), rtol=suspect.relative, atol=1e-7, equal_nan=True).all())


def uncontradicted(cases: Sequence[CaseResult], suspects: Sequence[Suspect]) -> tuple[CaseResult, ...]:
    """Drop the sentences of suspects that would not explain another wrong case, or would make a right one wrong."""
    wrong = {case.name for case in cases if case.mismatch is not None}
    right = {case.name for case in cases if case.passed}
    denied = {each.sentence for each in suspects if wrong.intersection(each.spares) or right.intersection(each.breaks)}
    return tuple(
        replace(case, mismatch=replace(case.mismatch, suspect=""))
        if case.mismatch is not None and case.mismatch.suspect in denied
        else case
        for case in cases
    )


@contextlib.contextmanager
def authored(what: str, case: Case) -> Iterator[None]:
    """Within this context `what`, a function of the exercise, works on `case`: its errors are for the author to fix.

    Raises:
        UnusableExercise: it fails; the sentence has the file and the line. Errors of the machine stay as they are.
    """
    try:
        yield
    except Exception as error:
        if _of_the_machine(error):
            raise
        raise UnusableExercise(f"{what} fails in the case {case.name!r}: {_place_and_error(error)}") from error


def _of_the_machine(error: Exception) -> bool:
    return isinstance(error, (GraderError, MemoryError, torch.AcceleratorError)) or out_of_memory(error)


def _place_and_error(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = next((each for each in reversed(frames) if "/exercises/" in each.filename), frames[-1])
    return f"{own.filename}, line {own.lineno}: {type(error).__name__}: {error}."


def _texts(got: Any, expected: Any) -> tuple[str, str]:
    """Format both with six digits, or with as many as it takes to distinguish them."""
    for digits in (6, 9, 12, 17):
        one, other = f"{float(got):.{digits}g}", f"{float(expected):.{digits}g}"
        if one != other:
            break
    return one, other
