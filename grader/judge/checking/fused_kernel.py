"""The judge's own kernel: it counts an output's wrong elements in one pass."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _at(row, column, stride_row, stride_column):  # type: ignore[no-untyped-def]
    return row[:, None] * stride_row + column[None, :] * stride_column


@triton.jit(  # type: ignore[untyped-decorator]
    do_not_specialize=["rows", "columns", "got_row", "got_column", "expected_row", "expected_column"]
)
def add_wrong(  # type: ignore[no-untyped-def]
    got_ptr, expected_ptr, budget_ptr, wrong_ptr,
    rows, columns, got_row, got_column, expected_row, expected_column,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Add the number of a tile's wrong elements to `wrong_ptr`; `budget_ptr`: absolute, relative, infinity, in float64.

    The result equals `compare.within` to the last bit, so the compiler must not fuse products and sums.
    """
    tiles = tl.cdiv(columns, COLUMNS)
    row = (tl.program_id(0) // tiles).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = (tl.program_id(0) % tiles).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    mask = (row < rows)[:, None] & (column < columns)[None, :]
    got = tl.load(got_ptr + _at(row, column, got_row, got_column), mask=mask, other=0).to(tl.float64)
    expected = tl.load(expected_ptr + _at(row, column, expected_row, expected_column), mask=mask, other=0.0)
    allowed = tl.load(budget_ptr + 1) * tl.abs(expected) + tl.load(budget_ptr)
    near = (tl.abs(got - expected) <= allowed) & (tl.abs(expected) < tl.load(budget_ptr + 2))
    wrong = mask & ~(near | (got == expected))
    count = tl.sum(tl.sum(wrong.to(tl.int32), axis=1), axis=0)
    tl.atomic_add(wrong_ptr, count.to(tl.int64), mask=count > 0)
