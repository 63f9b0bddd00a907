"""A kernel's hints to the compiler are compared with the interpreter's values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton.language as tl
from triton.runtime.interpreter import TensorHandle

from grader.worker.harnesses.triton_kernels import FalseHint, checked_hints

HINTS = {"multiple_of": "tt.divisibility", "max_contiguous": "tt.contiguity", "max_constancy": "tt.constancy"}
COLUMNS = np.arange(16, dtype=np.int32)
QUADS = (COLUMNS // 4 * 16 + COLUMNS % 4)[None, :] + np.array([[0], [3]], dtype=np.int32)  # the second row is unaligned
ADDRESSES = np.array(4096 + 4 * COLUMNS, dtype=np.uint64)
FLOATS = tl.pointer_type(tl.float32)


def _hint(name: str, values: list[int], data: Any, dtype: Any) -> None:
    with checked_hints():
        TensorHandle(data, dtype).set_attr(HINTS[name], values)


@pytest.mark.parametrize(
    ("name", "values", "data", "dtype"),
    [
        ("multiple_of", [4], np.array([1004], dtype=np.int32), tl.int32),
        ("multiple_of", [1], COLUMNS + 1, tl.int32),
        ("multiple_of", [16], COLUMNS + 32, tl.int32),  # only the first of each run counts
        ("multiple_of", [16], ADDRESSES, FLOATS),
        ("multiple_of", [1, 16], QUADS[:1], tl.int32),
        ("max_contiguous", [4], COLUMNS, tl.int32),
        ("max_contiguous", [64], COLUMNS, tl.int32),
        ("max_contiguous", [16], ADDRESSES, FLOATS),
        ("max_contiguous", [1, 4], QUADS, tl.int32),
        ("max_constancy", [4], COLUMNS < 12, tl.int1),
        ("max_constancy", [2, 1], np.zeros((2, 3), dtype=np.int32), tl.int32),
    ],
)
def test_a_true_hint_is_accepted(name: str, values: list[int], data: Any, dtype: Any) -> None:
    """Runs begin at multiples of their length. For pointers, multiples are in bytes and neighbours are elements."""
    _hint(name, values, data, dtype)


@pytest.mark.parametrize(
    ("name", "values", "data", "dtype", "said"),
    [
        ("multiple_of", [16], np.array([1004], dtype=np.int32), tl.int32, "there is a 1004"),
        ("multiple_of", [4], COLUMNS + 2, tl.int32, "there is a 2"),
        ("multiple_of", [4], 4 * COLUMNS + 1, tl.int32, "there is a 1"),
        ("multiple_of", [16], ADDRESSES + np.uint64(4), FLOATS, "there is a 4100"),
        ("multiple_of", [1, 4], QUADS, tl.int32, "there is a 3"),
        ("max_contiguous", [4], 2 * COLUMNS, tl.int32, "neighbours in a run are 0 and 2"),
        ("max_contiguous", [4], ADDRESSES * np.uint64(2), FLOATS, "neighbours in a run are 8192 and 8200"),
        ("max_contiguous", [1, 8], QUADS, tl.int32, "neighbours in a run are 3 and 16"),
        ("max_contiguous", [2, 1], QUADS, tl.int32, "neighbours in a run are 0 and 3"),
        ("max_constancy", [8], COLUMNS < 12, tl.int1, "neighbours in a run are True and False"),
    ],
)
def test_a_false_hint_raises(name: str, values: list[int], data: Any, dtype: Any, said: str) -> None:
    """The message names the hint and the values that contradict it."""
    with pytest.raises(FalseHint, match=rf"tl\.{name}\(…, \d+\) is false: {said}$"):
        _hint(name, values, data, dtype)


def test_hints_are_checked_only_within_the_context() -> None:
    """Other exercises may give hints that only hold for unmasked elements, as is usual in matrix products."""
    before = TensorHandle.set_attr
    with checked_hints():
        assert TensorHandle.set_attr is not before
    assert TensorHandle.set_attr is before
    TensorHandle(2 * COLUMNS, tl.int32).set_attr("tt.contiguity", [4])
