"""Take the softmax of rows that fit no SM: piece by piece, with a running maximum and a running sum.

Method: Milakov and Gimelshein, "Online normalizer calculation for softmax", arXiv 1805.02867 (2018).
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from grader.exercise import Array, Budget, Case, Gate, Suspect
from grader.exercises.triton.softmax import (
    KINDS_OF_EXPONENTIAL,
    RIGHT_BUT_FOR_A_FACTOR,
    SOFTMAX,
    first_row_everywhere,
    no_max_subtracted,
    numerator_only,
)

_LARGE = ", values up to ±10,000"
_BELOW = ", every value far below zero"
_LOWEST = ", every value near -10³⁰"
_LEADING = ", the row begins with minus infinity"
_SPIKE = ", the maximum comes last"
_HOLES = 17_000  # leading elements that are minus infinity: more than most pieces have


def _case(rows: int, columns: int, note: str = "", padding: tuple[int, int] = (0, 0)) -> Case:
    arrays = (
        Array("x", (rows, columns), row_padding=padding[0]),
        Array("out", (rows, columns), role="out", row_padding=padding[1]),
    )
    return Case(f"{rows} × {columns}{note}", arrays)


def _draw(case: Case, source: Any, machine: Any) -> dict[str, Any]:
    """Standard normal numbers, moved as the case's name says. The rows of a timed case are moved at random."""
    import torch

    shape = next(array.shape for array in case.arrays if array.name == "x")
    x = torch.randn(shape, generator=source, device=source.device)
    offset = 5_000 + 5_000 * torch.rand(shape[0], 1, generator=source, device=source.device)
    offset[::2] *= -1
    kind = case.name
    if case.name in {timed.name for timed in _TIMED}:
        kind = random.SystemRandom().choice(("", _LARGE, _BELOW))
    if kind.endswith(_LARGE):
        x += offset
    elif kind.endswith(_BELOW):
        x -= 200.0
    elif kind.endswith(_LOWEST):
        x = torch.where(x < 1, -1e30, -1.001e30)
    elif kind.endswith(_LEADING):
        x[:, :_HOLES] = float("-inf")
    elif kind.endswith(_SPIKE):
        x += 8.0 * torch.arange(shape[1], device=x.device) / shape[1]
    return {"x": x}


_TIMED = (_case(512, 65_536), _case(128, 262_144))
_SHORT = (_case(1, 1), _case(3, 128))
SIMULATOR_CASES = (
    *_SHORT,
    _case(5, 20_011),
    _case(3, 24_576, _SPIKE),
    _case(4, 9_000, _LARGE),
    _case(4, 9_001, _BELOW),
    _case(3, 30_000, _LOWEST),
    _case(3, 20_000, _LEADING),
    _case(5, 12_345, ", rows padded to 12,400 and to 12,352", padding=(55, 7)),
    _case(2, 65_536),
    _case(1, 1_100_003),
)


_PIECES = tuple(1 << power for power in (10, 12, 11, 13, 14, 15, 9, 8, 7))  # usual lengths, the most likely first
_CLOSE = 1e-3


def _fitting(arrays: Any, sums: Any) -> Any:
    """The output with the wrong denominator that fits the submission's output, or the first that shows the bug."""
    x, expected = arrays["x"], arrays["expected"]
    numerator = (x - x.amax(1, keepdim=True)).exp()
    made = []
    for denominator in sums:
        output = numerator / denominator
        if output.isclose(expected, _CLOSE, 0).all():
            continue
        if "got" in arrays and output.isclose(arrays["got"], _CLOSE, 1e-12, equal_nan=True).all():
            return output
        made.append(output)
    return None if "got" in arrays else next(iter(made), None)


def _pieces(x: Any, length: int) -> Any:
    """The rows as pieces of this length, filled up with minus infinity: rows × pieces × length."""
    import torch

    missing = -x.shape[1] % length
    return torch.nn.functional.pad(x, (0, missing), value=float("-inf")).reshape(x.shape[0], -1, length)


def _not_rescaled(x: Any) -> Iterator[Any]:
    """Sums whose terms belong to the maximum at their time: of a row, or of each element's place in a piece."""
    for length in _PIECES:
        if x.shape[1] > length:
            pieces = _pieces(x, length)
            running = pieces.amax(2, keepdim=True).cummax(1).values
            yield (pieces - running).exp().nan_to_num(0).sum((1, 2)).unsqueeze(1)
            lanes = pieces.cummax(1).values
            ends = lanes[:, -1:]
            own = (pieces - lanes).exp().nan_to_num(0).sum(1)
            yield (own * (ends[:, 0] - x.amax(1, keepdim=True)).exp()).sum(1, keepdim=True)


def _last_piece(x: Any) -> Iterator[Any]:
    for length in _PIECES:
        if x.shape[1] > length:
            first = (x.shape[1] - 1) // length * length
            yield (x[:, first:] - x.amax(1, keepdim=True)).exp().sum(1, keepdim=True)


def _added_as_they_are(x: Any) -> Iterator[Any]:
    """The pieces' sums, added up although each belongs to the maximum of its own piece."""
    for length in _PIECES:
        if x.shape[1] > length:
            pieces = _pieces(x, length)
            yield (pieces - pieces.amax(2, keepdim=True)).exp().nan_to_num(0).sum((1, 2)).unsqueeze(1)


def _tail_left_out(x: Any) -> Iterator[Any]:
    for length in _PIECES:
        if whole := x.shape[1] // length * length:
            yield (x[:, :whole] - x.amax(1, keepdim=True)).exp().sum(1, keepdim=True)


def _masked_as_zero(arrays: Any) -> Any:
    """The denominator counts elements past the end of the row as if they were 0."""
    x = arrays["x"]
    row_max = x.amax(1, keepdim=True)
    if x.abs().max() > 1e4 or x.shape[1] == 1:
        return None

    def sums() -> Iterator[Any]:
        for length in _PIECES:
            if missing := -x.shape[1] % length:
                yield (x - row_max).exp().sum(1, keepdim=True) + missing * (-row_max).exp()

    return _fitting(arrays, sums())


def _nan_after_a_piece_of_minus_infinity(arrays: Any) -> Any:
    """NaN in every row of the case whose first pieces are minus infinity."""
    if not bool(arrays["x"][:, 0].isinf().all()):
        return None
    return arrays["expected"] * float("nan")


def _something_else_won(arrays: Any) -> Any:
    """Zeros, or 0 / 0, in the case whose elements are near -10³⁰."""
    if arrays["x"].amax() >= -1e20:
        return None
    zeros = arrays["expected"] * 0
    return zeros if "got" in arrays and not arrays["got"].any() else zeros * float("nan")


def _zero_won(arrays: Any) -> Any:
    """0 / 0 in rows far below zero, if other rows are far above it."""
    x, expected = arrays["x"], arrays["expected"]
    highest = x.amax(1, keepdim=True)
    return expected.where(highest > -1e3, float("nan")) if highest.max() > 1e3 else None


def _nan_in_whole_pieces(arrays: Any) -> Any:
    """NaN in rows of whole pieces, so that nothing was masked."""
    x = arrays["x"]
    return None if x.shape[1] % max(_PIECES) or x.isinf().any() else arrays["expected"] * float("nan")


def _long(sums: Any) -> Any:
    return lambda arrays: _fitting(arrays, sums(arrays["x"]))


# On an H200, pieces of 8,192 elements were 1.25 times as fast as torch.softmax, and pieces of 4,096 1.1 times.
SOFTMAX_LONG = replace(
    SOFTMAX,
    id="softmax_long",
    title="Take the softmax of long rows",
    notebook="06_fuse_an_attention",
    entry="softmax_long",
    cases=(*SIMULATOR_CASES, _case(300, 65_537), _case(64, 100_000, _LARGE), _case(2, 262_144)),
    simulator_cases=SIMULATOR_CASES,
    timed_cases=_TIMED,
    plot_cases=tuple(_case((1 << 25) // n, n) for n in (16_384, 32_768, 65_536, 131_072, 262_144)),
    draw=_draw,
    budget=Budget(absolute=1e-12, relative=3e-5),
    correctness_points=4,
    gates=(Gate("torch", 1.1, 3, tuple(case.name for case in _TIMED)),),
    suspects=(
        Suspect(
            "The result is NaN if the row begins with a whole piece of -∞. Then both the old and the new maximum are "
            "-∞, and -∞ minus -∞ is NaN. Start the running maximum at a finite number lower than any value, -3.4e38, "
            "and keep it if the maximum of a piece is lower.",
            _nan_after_a_piece_of_minus_infinity,
            spares=tuple(case.name for case in SIMULATOR_CASES if not case.name.endswith(_LEADING)),
        ),
        Suspect(
            "0 won the maximum in rows far below it, and every exponential is 0: start the running maximum below any "
            "value, at -3.4e38, and load masked elements with `other=-float('inf')`.",
            _zero_won,
            spares=tuple(case.name for case in SIMULATOR_CASES if not case.name.endswith((_LARGE, _BELOW, _LOWEST))),
        ),
        Suspect(
            "Something that is not in the row won the maximum: every element of this case is near -10³⁰. Load masked "
            "elements with `other=-float('inf')`, and start the running maximum below -10³⁰.",
            _something_else_won,
            spares=tuple(case.name for case in SIMULATOR_CASES if not case.name.endswith(_LOWEST)),
        ),
        Suspect(
            "The row maximum was not subtracted: exp of a large value overflows to infinity, and exp of very small "
            "values is 0 for the whole row.",
            no_max_subtracted,
            spares=tuple(case.name for case in SIMULATOR_CASES if not case.name.endswith((_LARGE, _BELOW, _LOWEST))),
        ),
        Suspect(
            "The sum so far was not rescaled when the maximum rose: multiply it by `tl.exp(old_max - new_max)` before "
            "you add the next piece.",
            _long(_not_rescaled),
            spares=tuple(case.name for case in _SHORT),
        ),
        Suspect(
            "The sums of the pieces were added as they are, but each belongs to the maximum of its own piece. Bring "
            "them to one maximum first: multiply each by `tl.exp(its_max - row_max)`.",
            _long(_added_as_they_are),
            spares=tuple(case.name for case in _SHORT),
        ),
        Suspect(
            "The denominator is the sum of the last piece alone: add each piece to the sum so far.",
            _long(_last_piece),
            spares=tuple(case.name for case in _SHORT),
        ),
        Suspect(
            "The masked elements were counted: they were loaded as 0, so exp(0 - max) was added to the sum. Load "
            "them with `other=-float('inf')`.",
            _masked_as_zero,
            spares=("2 × 65536",),
        ),
        Suspect(
            "The last, partial piece of the row is missing from the sum: `tl.cdiv(columns, BLOCK)` pieces, not "
            "`columns // BLOCK`.",
            _long(_tail_left_out),
            spares=("2 × 65536",),
        ),
        Suspect("The numerator was stored without division by its sum.", numerator_only),
        Suspect(
            "Every row has the result of row 0: does the row's pointer depend on `program_id`?", first_row_everywhere
        ),
        Suspect(
            "The result is NaN although nothing is masked in these rows. Is the factor `tl.exp(old_max - new_max)`? "
            "The other way round it is infinite in the first piece, and infinity times 0 is NaN.",
            _nan_in_whole_pieces,
        ),
        RIGHT_BUT_FOR_A_FACTOR,
        *KINDS_OF_EXPONENTIAL,
    ),
    hints=(
        "Go over the row twice, in pieces of a fixed length: once for the maximum and the sum, once for the output.",
        "A new piece may raise the maximum. Then every term of the sum so far is too large by the same factor, "
        "`exp(new_max - old_max)`.",
        "Per piece: `new_max = tl.maximum(row_max, tl.max(x, axis=0))`, then rescale the sum, then add the piece's.",
        "Start with a sum of 0.0 and a maximum that is finite and lower than any value: -∞ minus -∞ is NaN.",
        "Pieces of 4,096 to 16,384 elements and 8 to 16 warps keep enough loads in flight.",
    ),
    case_limit_s=30.0,  # a row of a million elements, in short pieces
    plot_axis="N, columns of a row (2²⁵ elements in all, float32)",
)
