"""The place of the wrong elements in an output: its kind, a phrase that describes it, and whether blocks overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

from grader.verdict import Mismatch
from grader.words import count, index, plural

Kind = Literal[
    "everything", "one", "first_element", "all_but_first", "last_block", "after_first_block", "tail", "head", "run",
    "last_columns", "first_columns", "columns", "last_rows", "first_row", "all_but_first_row", "rows", "corner",
    "mid_row", "scattered",
]  # fmt: skip
SMALLEST_BLOCK = 16
_SOLID = 0.75  # some elements of a wrong row may be right by chance


@dataclass(frozen=True)
class Place:
    """`phrase` follows "12 of 4096 elements differ, ", and may be empty.

    `in_block` says that the region is a partial block: its start is a multiple of a power of two that exceeds its
    length. `aligned` says that a block may start there at all.
    """

    kind: Kind
    phrase: str = ""
    in_block: bool = False
    aligned: bool = False


def locate(mismatch: Mismatch) -> Place:
    """The place of the wrong elements; there must be at least one."""
    if mismatch.wrong >= mismatch.total or not mismatch.region_low:
        return Place("everything")
    kept = [axis for axis, size in enumerate(mismatch.shape) if size > 1]
    low = [mismatch.region_low[axis] for axis in kept]
    high = [mismatch.region_high[axis] for axis in kept]
    shape = [mismatch.shape[axis] for axis in kept]
    if len(shape) == 1:
        return _in_vector(low[0], high[0], shape[0], mismatch.wrong)
    if len(shape) == 2:
        if _ends_mid_row(mismatch, shape):
            return Place("mid_row", f"all from {index(mismatch.first_index or ())} to the end")
        return _in_matrix(low, high, shape, mismatch.wrong)
    return _in_any(mismatch)


def _in_vector(low: int, high: int, size: int, wrong: int) -> Place:
    if wrong == 1:
        if low == 0:
            return Place("first_element", "only the first")
        last = low == size - 1
        return Place("one", "the last one" if last else "", _partial_block(low, size), low % SMALLEST_BLOCK == 0)
    if wrong < high - low + 1:
        return Place("scattered", f"spread from index {count(low)} to {count(high)} of {count(size - 1)}")
    if high == size - 1:
        if low == 1:
            return Place("all_but_first", "every one but the first")
        if _partial_block(low, size):
            return Place("last_block", "all in the last partial block", True, True)
        if low >= SMALLEST_BLOCK and low & (low - 1) == 0:
            return Place("after_first_block", f"every one after the first {count(low)}")
        return Place("tail", f"the last {count(size - low)}", aligned=low % SMALLEST_BLOCK == 0)
    if low == 0:
        return Place("head", f"the first {count(high + 1)}")
    return Place("run", f"all from index {count(low)} to {count(high)}")


def _in_matrix(low: list[int], high: list[int], shape: list[int], wrong: int) -> Place:
    (top, left), (bottom, right), (rows, columns) = low, high, shape
    all_rows, all_columns = (top, bottom) == (0, rows - 1), (left, right) == (0, columns - 1)
    if wrong == 1:
        return Place("first_element", "only the first") if (top, left) == (0, 0) else Place("one")
    if all_rows and all_columns:
        return Place("scattered", "spread over all of it")
    if all_columns:
        return _rows(top, bottom, rows, wrong >= _SOLID * columns * (bottom - top + 1))
    wide = right - left + 1
    last_block = right == columns - 1 and _partial_block(left, columns)
    where = "all in the last partial block" if last_block else f"all in {_span('column', left, right, columns)}"
    if all_rows:
        if right == columns - 1:
            return Place("last_columns", f"{where} of each row" if last_block else where, last_block)
        solid = wrong >= _SOLID * rows * wide
        return Place("scattered" if not solid else "first_columns" if left == 0 else "columns", where)
    if top == bottom and wide > 1:
        kind: Kind = "last_columns" if right == columns - 1 else "columns"
        return Place(kind, f"{where} of row {count(top)}", last_block)
    corner = (bottom, right) == (rows - 1, columns - 1)
    within = f"all within {_span('row', top, bottom, rows)} and {_span('column', left, right, columns)}"
    return Place("corner" if corner else "scattered", within)


def _rows(top: int, bottom: int, rows: int, solid: bool) -> Place:
    where = f"all in {_span('row', top, bottom, rows)}"
    if (top, bottom) == (0, 0):
        return Place("first_row", where)
    if bottom == rows - 1:
        if top == 1 and solid:
            return Place("all_but_first_row", "in every row but the first")
        return Place("last_rows", where, _partial_block(top, rows))
    return Place("rows", where)


def _ends_mid_row(mismatch: Mismatch, shape: list[int]) -> bool:
    """Whether every element from the middle of some row to the end is wrong."""
    if mismatch.first_index is None:
        return False
    row, column = (at for at, size in zip(mismatch.first_index, mismatch.shape, strict=True) if size > 1)
    return column > 0 and row < shape[0] - 1 and mismatch.wrong == mismatch.total - row * shape[1] - column


def _in_any(mismatch: Mismatch) -> Place:
    box = prod(h - lo + 1 for lo, h in zip(mismatch.region_low, mismatch.region_high, strict=True))
    low, high = tuple(mismatch.region_low), tuple(mismatch.region_high)
    return Place("run" if box == mismatch.wrong else "scattered", f"all between {low} and {high}")


def _span(noun: str, low: int, high: int, size: int) -> str:
    if low == high:
        return f"the last {noun}" if high == size - 1 and low > 0 else f"{noun} {count(low)}"
    if low > 0 and high == size - 1:
        return f"the last {plural(size - low, noun)}"
    if low == 0 and high < size - 1:
        return f"the first {plural(high + 1, noun)}"
    return f"all {count(size)} {noun}s" if (low, high) == (0, size - 1) else f"{noun}s {count(low)} to {count(high)}"


def _partial_block(low: int, size: int) -> bool:
    """Whether a block that starts at `low`, a multiple of its power-of-two length, extends past the end."""
    block = low & -low
    return block >= SMALLEST_BLOCK and size - low < block


_BLOCKS = (2, *range(4, 1025, 4))  # usual numbers of threads along one axis


def overlap(mismatch: Mismatch, others: Sequence[Mismatch]) -> str:
    """The axis, "x" or "y", along which blocks overlap, or "". Too few blocks are not an overlap."""
    for axis, name in ((1, "x"), (0, "y")):
        covered = {found for each in (mismatch, *others) if (found := _covered(each, axis))}
        found_here = mismatch.unwritten and _covered(mismatch, axis)
        if found_here and not _too_few(covered) and _overlapping(covered):
            return name
    return ""


def _covered(m: Mismatch, axis: int) -> tuple[int, int] | None:
    """How far a matrix, or a vector along x, was written along an axis, and its size, if only the rest was not."""
    low, shape = m.region_low, m.shape
    if len(shape) == 1:
        low, shape = (0, *low), (1, *shape)
    if len(shape) != 2 or not m.wrong or m.unwritten != m.wrong or low[1 - axis]:
        return None
    first, size = low[axis], shape[axis]
    return (first, size) if first and m.wrong == (size - first) * shape[1 - axis] else None


# Blocks that overlap: their size, and the stride from the start of one to the next. At stride 1, `blockDim` is missing.
_STRIDE_ONE = [(block, 1) for block in _BLOCKS]
_STRIDES = [(1 << block, 1 << stride) for block in range(2, 11) for stride in range(1, block)]


def _overlapping(covered: set[tuple[int, int]]) -> bool:
    """Whether overlapping blocks explain how far each size is covered. One size would fit too many of `_STRIDES`."""
    return any(
        all(first == (-(-size // block) - 1) * stride + block for first, size in covered)
        for block, stride in (_STRIDE_ONE + _STRIDES if len(covered) > 1 else _STRIDE_ONE)
    )


def _too_few(covered: set[tuple[int, int]]) -> bool:
    """Whether too few blocks explain it: one number for all sizes, rounded down, or computed for larger blocks."""
    if any(all(first == size // block * block for first, size in covered) for block in _BLOCKS):
        return True
    larger = any(
        all(first == -(-size // (times << block)) << block for first, size in covered)
        for block in range(1, 11)
        for times in (2, 4, 8)
    )
    return len(covered) > 1 and (larger or len({first for first, _ in covered}) == 1)
