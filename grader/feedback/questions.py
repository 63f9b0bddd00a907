"""The question that a wrong output raises: a table of rules over its facts, the first that holds asks."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from grader.feedback.facts import Facts
from grader.words import index


@dataclass(frozen=True)
class _Rule:
    """When `holds`, `triton` or `cuda` is the question; `{first}`, `{pitch}` and `{cut}` are filled in.

    A `vague` one names no cause.
    """

    holds: Callable[[Facts], bool]
    triton: str
    cuda: str = ""
    vague: bool = False


def names_a_cause(facts: Facts) -> bool:
    """Whether what is asked of a mismatch names a likely cause, rather than where to look for one."""
    if facts.mismatch.suspect or facts.mismatch.outside:
        return True
    rule = next((rule for rule in WRONG if rule.holds(facts)), None) if facts.kernel else None
    return rule is not None and not rule.vague


def ask(facts: Facts, rules: tuple[_Rule, ...]) -> str:
    """The question of the first rule that holds, or an empty text."""
    rule = next((rule for rule in rules if rule.holds(facts)), None)
    if rule is None or not facts.kernel:
        return ""
    text = rule.cuda if facts.threads and rule.cuda else rule.triton
    m = facts.mismatch
    first = index(m.first_index) if m.first_index is not None else "0"
    columns = m.shape[-1] if m.shape else 0
    fills = {"first": first, "pitch": str(columns + facts.padding), "cut": str(facts.cut)}
    return re.sub(r"\{(first|pitch|cut)\}", lambda found: fills[found[1]], text)


def _at(*kinds: str) -> Callable[[Facts], bool]:
    return lambda facts: facts.at in kinds


def _unwritten(*kinds: str) -> Callable[[Facts], bool]:
    return lambda facts: facts.unwritten and (not kinds or facts.at in kinds)


def _nan(*kinds: str) -> Callable[[Facts], bool]:
    """Where the first that is wrong is infinite, NaN is not what came in."""
    return lambda f: f.not_finite and "inf" not in f.mismatch.got and (not kinds or f.at in kinds)


_STRIDE = "In this case the rows lie {pitch} elements apart: step from row to row with the stride, not with N."

# The first rule that holds asks its question.
WRONG: tuple[_Rule, ...] = (
    _Rule(lambda f: f.padded, _STRIDE),
    _Rule(
        lambda f: f.run_on,
        "More elements were written than `out` has: what runs on past the end of a row lands in another.",
    ),
    _Rule(
        lambda f: f.at == "everything" and f.unwritten and f.clues.returns_value,
        "The function returned something; results belong in `out`.",
    ),
    _Rule(
        lambda f: f.cut is not None and not f.cuda,
        "Columns from {cut} on were never written: does the block hold a whole row?",
    ),
    _Rule(
        lambda f: f.unwritten and f.swapped,
        "",
        "Does x go with the width and y with the height, in the kernel and in the grid?",
    ),
    _Rule(
        lambda f: f.unwritten and f.smaller_unwritten and f.at in ("last_block", "tail", "one", "corner"),
        "Smaller cases were not written at all, as by an empty grid: was the division rounded down? "
        "`triton.cdiv(n, BLOCK_SIZE)` rounds up.",
        "Smaller cases were not written at all, as by an empty grid: was the division rounded down? "
        "`(n + block - 1) / block` rounds up.",
    ),
    _Rule(
        _unwritten("everything"),
        "Is the kernel launched, and does it end with a `tl.store` to `out`?",
        "Is the kernel launched, on enough blocks of threads, and does it assign to `out[…]`?",
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
        "Only row 0 was written: is there a program for each row, and does the row depend on `program_id`?",
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
        lambda f: f.unwritten and f.at == "tail" and 2 * f.mismatch.wrong > f.mismatch.total,
        "Is `program_id` multiplied by the block size? Is the grid rounded up, `triton.cdiv(n, BLOCK_SIZE)`?",
        "Is `blockIdx` multiplied by `blockDim`? Is the grid rounded up, `(n + block - 1) / block`?",
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
        lambda f: f.close and f.double,
        "The values at {first} are close, and the arrays are float64 here: is something computed or rounded in a lower "
        "precision, as a constant or a sum of float32 is?",
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
        lambda f: f.at == "everything" and f.mismatch.total == 1,
        "Take the smallest case that is wrong and follow it by hand: which inputs go into its number, and what is done "
        "to them?",
        vague=True,
    ),
    _Rule(
        _at("everything"),
        "Every element differs, so take one and follow it by hand: which inputs should go into {first}, and which do?",
        vague=True,
    ),
    _Rule(
        _at("scattered", "run", "rows", "columns"),
        "Take {first} and follow it by hand: which inputs should go into it, and do two programs write it?",
        "Take {first} and follow it by hand: which inputs should go into it, and do two threads write it?",
        vague=True,
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
        lambda f: f.clues.branches_on_block and not f.cuda,
        "Is the store masked? `if` on a block does not mask it: pass `mask=`.",
    ),
    _Rule(
        lambda f: (
            (f.mismatch.outside, f.mismatch.wrong) == (1, 0)
            and len(f.mismatch.shape) == 1
            and not f.clues.branches_on_block
        ),
        "One element too many: does the mask ask for `<`, not for `<=`?",
        "One element too many: is it asked for `<`, not for `<=`, before a thread writes?",
    ),
    _Rule(
        lambda f: f.cuda and len(f.mismatch.shape) == 2,
        "",
        "Are both `row < height` and `column < width` asked, before a thread writes?",
    ),
    _Rule(
        lambda f: True,
        "Is the store masked?",
        "Do threads that have no element return before they write?",
    ),
)
