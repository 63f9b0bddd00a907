"""The question that a wrong output raises: a table of rules over its facts, the first that holds asks."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite

from grader.exercise import Case, Exercise
from grader.feedback.places import Place, locate
from grader.feedback.words import index
from grader.verdict import Mismatch

__all__ = ["OUTSIDE", "WRONG", "Facts", "ask", "outside_of"]

_CLOSE = 1e-2  # a relative error below this is lost precision rather than a wrong formula


@dataclass(frozen=True)
class Facts:
    """What the rules below look at."""

    mismatch: Mismatch
    case: Case | None
    exercise: Exercise | None

    @property
    def place(self) -> Place:
        return locate(self.mismatch)

    @property
    def at(self) -> str:
        return self.place.kind

    @property
    def cuda(self) -> bool:
        return self.exercise is not None and self.exercise.backend == "cuda"

    @property
    def unwritten(self) -> bool:
        return self.mismatch.unwritten == self.mismatch.wrong

    @property
    def not_finite(self) -> bool:
        return self.mismatch.not_finite > 0

    @property
    def padding(self) -> int:
        arrays = self.case.arrays if self.case else ()
        return max((array.row_padding for array in arrays), default=0)

    @property
    def padded(self) -> bool:
        """Rows lie apart, the first is right and the second is not: what follows from stepping by N."""
        return self.padding > 0 and self.mismatch.region_low[:1] == (1,)

    @property
    def close(self) -> bool:
        """The first wrong element is off by little."""
        m = self.mismatch
        try:
            got, expected = float(m.got), float(m.expected)
        except ValueError:
            return False
        if m.not_finite or m.unwritten or not (isfinite(got) and isfinite(expected)):
            return False
        return abs(got - expected) <= _CLOSE * abs(expected)

    @property
    def side(self) -> str:
        """Where the first element outside of the output lies: "before", "between" its rows, or "after"."""
        offset = self.mismatch.outside_first_offset
        if offset is None:
            return "around"
        if offset < 0:
            return "before"
        return "between" if offset < self._span else "after"

    @property
    def _span(self) -> int:
        shape = self.mismatch.shape
        if len(shape) < 2:
            return self.mismatch.total
        rows = self.mismatch.total // shape[-1]
        arrays = [a for a in (self.case.outputs if self.case else ()) if a.name == self.mismatch.output]
        padding = arrays[0].row_padding if arrays else 0
        return (rows - 1) * (shape[-1] + padding) + shape[-1]


def outside_of(mismatch: Mismatch, case: Case | None) -> str:
    """Where it wrote: "before" the output, "between" its rows or "after" it; an empty text where that is not known."""
    side = Facts(mismatch, case, None).side
    return "" if side == "around" else side


@dataclass(frozen=True)
class _Rule:
    """When `holds`, `triton` or `cuda` is the question; `{first}` and `{pitch}` are filled in."""

    holds: Callable[[Facts], bool]
    triton: str
    cuda: str = ""


def ask(facts: Facts, rules: tuple[_Rule, ...]) -> str:
    """The question of the first rule that holds, or an empty text."""
    rule = next((rule for rule in rules if rule.holds(facts)), None)
    if rule is None:
        return ""
    text = rule.cuda if facts.cuda and rule.cuda else rule.triton
    m = facts.mismatch
    first = index(m.first_index) if m.first_index is not None else "0"
    columns = m.shape[-1] if m.shape else 0
    fills = {"first": first, "pitch": str(columns + facts.padding)}
    return re.sub(r"\{(first|pitch)\}", lambda found: fills[found[1]], text)


def _at(*kinds: str) -> Callable[[Facts], bool]:
    return lambda facts: facts.at in kinds


def _unwritten(*kinds: str) -> Callable[[Facts], bool]:
    return lambda facts: facts.unwritten and (not kinds or facts.at in kinds)


def _nan(*kinds: str) -> Callable[[Facts], bool]:
    return lambda facts: facts.not_finite and (not kinds or facts.at in kinds)


_STRIDE = "In this case the rows lie {pitch} elements apart: step from row to row with the stride, not with N."

# The first rule that holds asks its question.
WRONG: tuple[_Rule, ...] = (
    _Rule(lambda f: f.padded, _STRIDE),
    _Rule(
        _unwritten("everything"),
        "Is the kernel launched, and does it end with a `tl.store` to `out`?",
        "Is the kernel launched with `<<<grid, block>>>`, and does it assign to `out[…]`?",
    ),
    _Rule(
        _unwritten("all_but_first"),
        "Are the offsets a whole block, `program_id * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)`?",
        "Is the index `blockIdx.x * blockDim.x + threadIdx.x`?",
    ),
    _Rule(
        _unwritten("after_first_block"),
        "Does the offset depend on `program_id`, and is there one program for each block?",
        "Does the index depend on `blockIdx`, and is the grid more than one block?",
    ),
    _Rule(
        _unwritten("all_but_first_row"),
        "Does the row depend on `program_id`, and is there a program for every row?",
        "Does the row depend on `blockIdx.y`, and is the grid rounded up in y?",
    ),
    _Rule(
        _unwritten("last_columns", "columns"),
        "Does one program cover the whole row? Round the block up: `triton.next_power_of_2(N)`.",
        "Is the grid rounded up in x: `(width + block.x - 1) / block.x`?",
    ),
    _Rule(
        _unwritten("last_rows", "rows"),
        "Is there a program for every row?",
        "Is the grid rounded up in y: `(height + block.y - 1) / block.y`?",
    ),
    _Rule(
        _at("mid_row"),
        "The right part ends in the middle of a row: does each row start at `row * stride`, and is every row covered?",
        "The right part ends in the middle of a row: is the index `row * width + column`, and is the grid rounded up?",
    ),
    _Rule(
        lambda f: f.unwritten and f.at in ("tail", "one") and not f.place.aligned,
        "Does the mask let the last ones through: `offsets < n`?",
        "Does the bounds check let the last ones through: `column < width`, `row < height`?",
    ),
    _Rule(
        _unwritten("last_block", "tail", "one", "corner"),
        "Is the grid rounded up? `triton.cdiv(n, BLOCK_SIZE)` programs are needed.",
        "Is the grid rounded up? `(n + block - 1) / block` blocks are needed.",
    ),
    _Rule(_unwritten("head", "first_element", "first_row", "first_columns"), "Does the index begin at 0?"),
    _Rule(
        _unwritten(),
        "Is each step from one program to the next exactly one block long, and is the mask right?",
        "Is the step from one block of threads to the next exactly `blockDim` long, and is the bounds check right?",
    ),
    _Rule(
        lambda f: f.not_finite and f.case is not None and f.case.fill == "minus_inf",
        "Some inputs are minus infinity here, and infinity minus infinity is NaN: is anything subtracted before the "
        "row maximum is known?",
    ),
    _Rule(
        _nan("everything", "last_block", "last_columns", "tail", "one", "last_rows", "corner", "all_but_first_row"),
        "The memory around the inputs holds NaN here, so a load that reaches past them brings NaN in: is every load "
        "masked, and with the right `other`?",
        "The memory around the inputs holds NaN here, so a read that reaches past them brings NaN in: is the index "
        "checked against the bounds before the read?",
    ),
    _Rule(
        _nan(),
        "NaN comes from a load outside of the inputs, from 0/0, or from infinity minus infinity: which of them can "
        "happen at {first}?",
    ),
    _Rule(
        lambda f: f.close,
        "The values at {first} are close: is something computed or rounded in a lower precision than float32?",
    ),
    _Rule(
        _at("all_but_first_row"),
        "Row 0 is right and the others are not: does each program start at its own row, `program_id` times the stride?",
        "Row 0 is right and the others are not: is the index `row * width + column`?",
    ),
    _Rule(
        lambda f: f.place.in_block,
        "Is the tail masked? The last block sticks out past the end.",
        "Is the bounds check right? The last block of threads sticks out past the end.",
    ),
    _Rule(
        _at("last_columns", "tail", "one"),
        "What is different at the end: is the tail masked, and is the grid rounded up?",
        "What is different at the end: is the bounds check right, and is the grid rounded up?",
    ),
    _Rule(
        _at("last_rows", "corner"),
        "Is there a program for every row, and does none of them reach into the next one's row?",
        "Is the grid rounded up in both directions, and is the bounds check `row < height && column < width`?",
    ),
    _Rule(
        _at("after_first_block"),
        "The first block is right and the others are not: is `program_id` times the block size in every offset?",
        "The first block of threads is right and the others are not: is `blockIdx` in every index?",
    ),
    _Rule(
        _at("first_element", "first_row", "head", "first_columns"),
        "What is different at the start: does the index begin at 0, and does another program write here too?",
        "What is different at the start: does the index begin at 0, and does another thread write here too?",
    ),
    _Rule(
        _at("everything"),
        "Every element differs, so take one and follow it by hand: which inputs should go into {first}, and which do?",
    ),
    _Rule(
        _at("scattered", "run", "rows", "columns"),
        "Take {first} and follow it by hand: which inputs should go into it, and do two programs write it?",
        "Take {first} and follow it by hand: which inputs should go into it, and do two threads write it?",
    ),
)

OUTSIDE: tuple[_Rule, ...] = (
    _Rule(lambda f: f.side == "before", "Can an offset be negative?"),
    _Rule(
        lambda f: f.side == "between" and f.mismatch.wrong > 0,
        "Step from row to row with the stride, not with N.",
    ),
    _Rule(
        lambda f: f.side == "between",
        "Is the store masked at the end of each row?",
        "Do threads beyond the end of a row return before they write?",
    ),
    _Rule(
        lambda f: True,
        "Is the store masked?",
        "Do threads that have no element return before they write?",
    ),
)
