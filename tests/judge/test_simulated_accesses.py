"""A race in the simulator fails the case, a read past the end is a note, and what a GPU offers is there."""

from __future__ import annotations

from typing import Any

import pytest

_HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n@triton.jit\n"
_MEAN = (
    _HEAD
    + """def kernel(x_ptr, out_ptr, n, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    part = tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0)) / n
    tl.ADD


def mean_triton(x, out):
    out.zero_()
    kernel[(triton.cdiv(x.numel(), 4096),)](x, out, x.numel(), SIZE=4096)
"""
)
_ADD = (
    _HEAD
    + """def kernel(x_ptr, y_ptr, out_ptr, n, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(out_ptr + i, tl.load(x_ptr + iMASK) + tl.load(y_ptr + i, mask=i < n), mask=i < n)


def vector_add(x, y, out):
    assert x.is_cuda
    kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), SIZE=1024)
"""
)
_ONE_BLOCK = (
    _HEAD
    + """def kernel(x_ptr, out_ptr, n, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0)) / n)


def mean_triton(x, out):
    kernel[(1,)](x, out, x.numel(), SIZE=triton.next_power_of_2(x.numel()))
"""
)
_INPUT = _ADD.replace("MASK", ", mask=i < n").replace("(out_ptr + i", "(x_ptr + i")


def test_a_race_fails_the_case(quick_judge: Any) -> None:
    """The kernel that loads, adds and stores is right in the simulator; the atomic one is right everywhere."""
    racy = _MEAN.replace("ADD", "store(out_ptr, tl.load(out_ptr) + part)")
    verdict = quick_judge.grade(racy, "mean_triton")
    assert (verdict.points, verdict.failure.kind, verdict.failure.line) == (0, "fails_on_gpu", 10)
    assert "program 0 stores to `out[0]` and program 1 loads it" in verdict.failure.message
    assert quick_judge.grade(_MEAN.replace("ADD", "atomic_add(out_ptr, part)"), "mean_triton").points == 3


def test_a_read_past_the_end_is_a_note(quick_judge: Any) -> None:
    """It takes no points, and is reported once. With a mask nothing is reported."""
    verdict = quick_judge.grade(_ADD.replace("MASK", ""), "vector_add")
    assert verdict.points == 3
    (note,) = verdict.findings
    assert note.kind == "access"
    assert "Line 9: `x` is read past its end: element 1,023 of 1." in note.sentence
    assert quick_judge.grade(_ADD.replace("MASK", ", mask=i < n"), "vector_add").findings == ()


@pytest.mark.parametrize(
    ("source", "exercise", "says"),
    [(_ONE_BLOCK, "mean_triton", "maximum tensor numel"), (_INPUT, "vector_add", "wrote to `x`, which is an input")],
)
def test_a_failure_names_its_cause(quick_judge: Any, source: str, exercise: str, says: str) -> None:
    """A block of more than 2^20 elements, and a store to an input, which is read-only."""
    verdict = quick_judge.grade(source, exercise)
    assert verdict.points == 0
    assert says in verdict.failure.message
