"""Outputs against the float64 oracle: finite values first, then the error budget, then where and how they differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from grader.exercise import Budget, Suspect, Tensors
from grader.protocol.arena import POISON_BYTE
from grader.verdict import CaseResult, Mismatch


def within(got: Any, expected: Any, budget: Budget) -> Any:
    """Where `got` is right: a boolean tensor. NaN is never right; an infinity is only where it is expected."""
    error = (got.double() - expected).abs()
    allowed = budget.absolute + budget.relative * expected.abs()
    return ((error <= allowed) & expected.isfinite()) | (got.double() == expected)


def _all_right(got: Any, expected: Any, budget: Budget) -> bool:
    """`within` where everything is finite, in few passes over memory."""
    error = (expected - got).abs_()
    allowed = expected.abs().mul_(budget.relative).add_(budget.absolute)
    return bool(((error <= allowed) & (allowed < float("inf"))).all())


def poisoned(got: Any) -> Any:
    """Where `got` still holds the poison. In an integer type that is a value like any other: 255, or -1."""
    import torch

    raw = got.contiguous().view(torch.uint8).reshape(*got.shape, got.element_size())
    return (raw == POISON_BYTE).all(-1)


def _unwritten(got: Any, wrong: Any) -> Any:
    """Where an element was never written. Of integers this is said only where it explains all that is wrong."""
    unwritten = poisoned(got) & wrong
    sure = got.is_floating_point() or bool((unwritten == wrong).all())
    return unwritten if sure else unwritten.zero_()


def compare(name: str, got: Any, expected: Any, budget: Budget, outside: Sequence[int] = ()) -> Mismatch | None:
    """How `got` differs from `expected` (same shape, float64), or None.

    `outside` are the offsets, in elements from the output's start, of the elements that were written around it.
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
    }


def suspected(got: Any, expected: Any, inputs: Tensors, suspects: Sequence[Suspect]) -> str:
    """The sentence of the first suspect whose output this is, or an empty text."""
    import torch

    double = {name: value.double() for name, value in inputs.items()} | {"expected": expected, "got": got.double()}
    for suspect in suspects:
        bug = suspect.output(double)
        if bug is None or _same(bug, expected):
            continue
        if torch.isclose(got.double(), bug.double(), rtol=suspect.relative, atol=1e-7, equal_nan=True).all():
            return suspect.sentence
    return ""


def uncontradicted(cases: Sequence[CaseResult], suspects: Sequence[Suspect]) -> tuple[CaseResult, ...]:
    """The cases without the sentences of suspects that would have left a case right which is wrong."""
    wrong = {case.name for case in cases if case.mismatch is not None}
    denied = {suspect.sentence for suspect in suspects if wrong.intersection(suspect.spares)}
    return tuple(
        replace(case, mismatch=replace(case.mismatch, suspect=""))
        if case.mismatch is not None and case.mismatch.suspect in denied
        else case
        for case in cases
    )


def _same(bug: Any, expected: Any) -> bool:
    import torch

    return bool(torch.isclose(bug.double(), expected, rtol=1e-3, atol=1e-7).all())


def _texts(got: Any, expected: Any) -> tuple[str, str]:
    """Both with six digits, or with as many as tell them apart."""
    for digits in (6, 9, 12, 17):
        one, other = f"{float(got):.{digits}g}", f"{float(expected):.{digits}g}"
        if one != other:
            break
    return one, other
