"""Look whether what a kernel tells Triton's compiler is true: its interpreter has the values, and passes hints over."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

__all__ = ["FalseHint", "checked_hints"]

_NAMES = {"tt.divisibility": "multiple_of", "tt.contiguity": "max_contiguous", "tt.constancy": "max_constancy"}


class FalseHint(RuntimeError):
    """A hint does not hold for the values that it stands around."""


@contextlib.contextmanager
def checked_hints() -> Iterator[None]:
    """Kernels that the interpreter runs meanwhile raise FalseHint where one of their hints is false."""
    from triton.runtime.interpreter import TensorHandle

    before = TensorHandle.set_attr

    def set_attr(self: Any, key: str, values: Any) -> None:
        if key in _NAMES:
            _look(_NAMES[key], self, [int(value) for value in values])
        before(self, key, values)

    TensorHandle.set_attr = set_attr
    try:
        yield
    finally:
        TensorHandle.set_attr = before


def _look(name: str, handle: Any, values: list[int]) -> None:
    # Of pointers, neighbours lie an element apart; what they are multiples of is counted in bytes.
    is_pointer = hasattr(handle.dtype, "element_ty")
    step = max(1, handle.dtype.element_ty.primitive_bitwidth // 8) if is_pointer else 1
    data = np.atleast_1d(handle.data)
    for axis, value in enumerate(values):
        rows = np.moveaxis(data, axis, -1).reshape(-1, data.shape[axis]).astype(np.int64)
        if name == "multiple_of":
            first = rows.reshape(len(rows), -1, _run(rows, step))[:, :, 0]
            wrong = first[first % value != 0]
            if wrong.size:
                raise FalseHint(f"tl.{name}(…, {value}) is false: there is a {wrong[0]}")
            continue
        length = min(value, rows.shape[1])
        runs = rows.reshape(-1, length if rows.shape[1] % length == 0 else rows.shape[1])
        wrong = np.argwhere(np.diff(runs) != (step if name == "max_contiguous" else 0))
        if len(wrong):
            run, at = wrong[0]
            pair = (data.dtype.type(number) for number in runs[run, at : at + 2])
            raise FalseHint(f"tl.{name}(…, {value}) is false: neighbours in a run are {' and '.join(map(str, pair))}")


def _run(rows: Any, step: int) -> int:
    """The longest power of two so that all groups of as many elements hold neighbours."""
    longest = 1
    while rows.shape[1] % (2 * longest) == 0:
        if (np.diff(rows.reshape(len(rows), -1, 2 * longest)) != step).any():
            break
        longest *= 2
    return longest
