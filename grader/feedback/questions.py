"""Questions about a wrong output: a table of rules over its facts. The first that holds is used."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from grader.feedback.facts import Facts
from grader.verdict import Mismatch
from grader.words import index

_USUAL_BLOCKS = (32, 64, 128, 256, 512, 1024)  # numbers of elements


@dataclass(frozen=True)
class _Rule:
    """If `holds`, the question is `triton` or `cuda`, with `{first}`, `{pitch}`, `{own_pitch}`, `{cut}`, `{axis}`,
    `{wider}` and `{before}` filled in.

    A `vague` question names no cause. Rules apply to exercises with kernels; one with `anywhere` applies to others as
    well.
    """

    holds: Callable[[Facts], bool]
    triton: str
    cuda: str = ""
    vague: bool = False
    anywhere: bool = False


def names_a_cause(facts: Facts) -> bool:
    """Whether the sentences about a mismatch name a likely cause, rather than a place to look for one."""
    if facts.mismatch.suspect or facts.mismatch.outside or facts.clues.bug:
        return True
    rule = _first(facts, WRONG)
    return rule is not None and not rule.vague


def ask(facts: Facts, rules: tuple[_Rule, ...]) -> str:
    """The question of the first rule that holds, or an empty text."""
    rule = _first(facts, rules)
    if rule is None:
        return ""
    m = facts.mismatch
    first = index(m.first_index) if m.first_index is not None else "0"
    fills = {"first": first, "pitch": str((m.shape[-1] if m.shape else 0) + facts.padding), "cut": str(facts.cut)}
    fills |= {"axis": facts.overlap, "wider": str(facts.wider), "before": str(_before(m))}
    fills |= {"own_pitch": str((m.shape[-1] if m.shape else 0) + facts.own_padding)}
    text = rule.cuda if facts.threads and rule.cuda else rule.triton
    return re.sub(r"\{(first|pitch|own_pitch|cut|axis|wider|before)\}", lambda found: fills[found[1]], text)


def _before(m: Mismatch) -> int:
    """The number of elements before the first wrong one, in row-major order."""
    offset = 0
    for at, size in zip(m.first_index or (), m.shape, strict=False):
        offset = offset * size + at
    return offset


def _first(facts: Facts, rules: tuple[_Rule, ...]) -> _Rule | None:
    rule = next((rule for rule in rules if rule.holds(facts)), None)
    return rule if rule is None or facts.kernel or (rule.anywhere and not facts.answer) else None


def _at(*kinds: str) -> Callable[[Facts], bool]:
    return lambda facts: facts.at in kinds


def _unwritten(*kinds: str) -> Callable[[Facts], bool]:
    return lambda facts: facts.unwritten and (not kinds or facts.at in kinds)


def _nan(*kinds: str) -> Callable[[Facts], bool]:
    """Whether NaN came in: not if the first wrong element is infinite."""
    return lambda f: f.not_finite and "inf" not in f.mismatch.got and (not kinds or f.at in kinds)


_STRIDE = "The rows of this case are {pitch} elements apart: step from row to row with the stride, not with N."

_WIDER = (
    "The kernel wrote {wider} times as many bytes as `out` has: does it write through a pointer to a wider type, such "
    "as `int*` for bytes, or `double*` for float32?"
)
WRONG: tuple[_Rule, ...] = (
    _Rule(lambda f: f.wider > 0, _WIDER),
    _Rule(
        lambda f: f.padded and f.side in ("beyond", "after"),
        "The rows were written too far apart: those of `out` are {own_pitch} elements apart here, so step with the "
        "stride of `out`, not with that of another matrix.",
    ),
    _Rule(lambda f: f.padded, _STRIDE),
    _Rule(
        lambda f: f.run_on,
        "More elements were written than `out` has: writes past the end of one row overwrite another row.",
    ),
    _Rule(
        lambda f: f.at == "everything" and f.unwritten and f.clues.returns_value,
        "The function returned a value, but the result must be written to `out`.",
    ),
    _Rule(
        lambda f: f.at == "everything" and f.unwritten and f.clues.rebinds_out,
        "The function assigns another tensor to `out`, so nothing is written to the one that it was given.",
    ),
    _Rule(
        lambda f: f.cut is not None and not f.cuda,
        "Columns from {cut} on were never written: does the block hold a whole row?",
    ),
    _Rule(
        lambda f: f.unwritten and f.swapped,
        "",
        "Does x go with the width and y with the height, both in the kernel and in the grid?",
    ),
    _Rule(
        lambda f: f.unwritten and f.at == "last_rows" and f.as_many_rows_as_columns and not f.threads,
        "As many rows were written as there are columns: a program computes a row, so the grid has as many programs as "
        "`x` has rows.",
    ),
    _Rule(
        lambda f: f.overlap != "",
        "Neighbouring programs overlap: the block of a program begins at `program_id * BLOCK_SIZE`.",
        "Neighbouring blocks overlap: a block begins at `blockIdx.{axis} * blockDim.{axis}`, and "
        "`threadIdx.{axis}` counts from there.",
    ),
    _Rule(
        lambda f: f.unwritten and f.smaller_unwritten and f.at in ("last_block", "tail", "one", "corner"),
        "Smaller cases were not written at all, as if the grid were empty: was the division rounded down? "
        "`triton.cdiv(n, BLOCK_SIZE)` rounds up.",
        "Smaller cases were not written at all, as if the grid were empty: was the division rounded down? `(n + "
        "block - 1) / block` rounds up.",
    ),
    _Rule(
        lambda f: f.nothing and len(f.others) > 0,
        "Nothing was written to `out`, in any case. Is the kernel launched, and does it store to `out` with "
        "`tl.store`?",
        "Nothing was written to `out`, in any case. Is the kernel launched on a grid of blocks, with `out` itself, and "
        "does it assign to `out[…]`?",
    ),
    _Rule(
        _unwritten("everything"),
        "Is the kernel launched, and does it store to `out` with `tl.store`?",
        "Is the kernel launched with enough thread blocks, and does it assign to `out[…]`?",
    ),
    _Rule(
        _unwritten("all_but_first"),
        "Do the offsets cover a whole block: `program_id * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)`?",
        "Is the index `blockIdx.x * blockDim.x + threadIdx.x`?",
    ),
    _Rule(
        _unwritten("after_first_block"),
        "Does the offset depend on `program_id`, and is there one program per block?",
        "Does the index depend on `blockIdx`, and does the grid have more than one block?",
    ),
    _Rule(
        _unwritten("all_but_first_row"),
        "Only row 0 was written: is there one program per row, and does the row depend on `program_id`?",
        "Does the row depend on `blockIdx.y`, and is the grid rounded up in y?",
    ),
    _Rule(
        _unwritten("last_columns", "columns"),
        "Does one program cover the whole row? Round the block up: `triton.next_power_of_2(N)`. If several share a "
        "row, there must be `triton.cdiv(N, BLOCK)` of them.",
        "Is the grid rounded up in x: `(width + block.x - 1) / block.x`?",
    ),
    _Rule(
        _unwritten("last_rows", "rows"),
        "Is there a program for every row?",
        "Is the grid rounded up in y: `(height + block.y - 1) / block.y`?",
    ),
    _Rule(
        lambda f: f.at == "mid_row" and _before(f.mismatch) in _USUAL_BLOCKS,
        "Exactly the first {before} elements are right. If a block has as many, does the offset depend on "
        "`program_id`?",
        "Exactly the first {before} elements are right. If a block has as many threads, does the index depend on "
        "`blockIdx`?",
    ),
    _Rule(
        _at("mid_row"),
        "The correct part ends in the middle of a row: does each row start at `row * stride`, and is every row "
        "covered?",
        "The correct part ends in the middle of a row: is the index `row * width + column`, and is the grid rounded "
        "up?",
    ),
    _Rule(
        lambda f: f.unwritten and f.at == "tail" and 2 * f.mismatch.wrong > f.mismatch.total,
        "Is `program_id` multiplied by the block size? Is the grid rounded up, `triton.cdiv(n, BLOCK_SIZE)`?",
        "Is `blockIdx` multiplied by `blockDim`? Is the grid rounded up, `(n + block - 1) / block`?",
    ),
    _Rule(
        lambda f: f.unwritten and f.at in ("tail", "one") and not f.place.aligned,
        "Does the mask include the last elements: `offsets < n`?",
        "Does the bounds check include the last elements: `column < width`, `row < height`?",
    ),
    _Rule(
        _unwritten("last_block", "tail", "one", "corner"),
        "Is the grid rounded up? `triton.cdiv(n, BLOCK_SIZE)` programs are needed.",
        "Is the grid rounded up? `(n + block - 1) / block` blocks are needed.",
    ),
    _Rule(_unwritten("head", "first_element", "first_row", "first_columns"), "Does the index start at 0?"),
    _Rule(
        _unwritten(),
        "Are consecutive programs exactly one block apart, and is the mask right?",
        "Are consecutive thread blocks exactly `blockDim` apart, and is the bounds check right?",
    ),
    _Rule(
        lambda f: f.not_finite and f.case is not None and f.case.fill == "minus_inf",
        "Some inputs here are minus infinity, and infinity minus infinity is NaN: does the kernel subtract anything "
        "before it knows the row maximum?",
    ),
    _Rule(
        _nan("everything", "last_block", "last_columns", "tail", "one", "last_rows", "corner", "all_but_first_row"),
        "The memory around the inputs holds NaN, so a load past their end returns NaN: is every load masked, with "
        "the right `other`?",
        "The memory around the inputs holds NaN, so a read past their end returns NaN: does the kernel check the "
        "index against the bounds before the read?",
    ),
    _Rule(
        _nan(),
        "NaN comes from a load outside the inputs, from 0/0, or from infinity minus infinity: which of these can "
        "happen at {first}?",
    ),
    _Rule(
        lambda f: f.mismatch.zeros == f.mismatch.total > 1,
        "The output is all zeros: does the result reach the variable that is stored?",
    ),
    _Rule(
        lambda f: f.close and f.double,
        "The values at {first} are close, and the arrays are float64: is part of the computation in lower precision, "
        "such as a float32 constant or sum?",
        anywhere=True,
    ),
    _Rule(
        lambda f: f.close and f.clues.one_by_one,
        "The values at {first} are close, and the kernel takes one element at a time: many values added to one "
        "float32, one after another, lose precision. Load a whole block with `tl.arange`, and add it with `tl.sum`.",
    ),
    _Rule(
        lambda f: f.close and not f.integers,
        "The values at {first} are close: is part of the computation in lower precision than float32, or are many "
        "values added to one float32, one after another?",
    ),
    _Rule(
        lambda f: f.at == "all_but_first_row" and not f.causal,
        "Row 0 is right but the others are wrong: does each program start at its own row, `program_id` times the "
        "stride?",
        "Row 0 is right but the others are wrong: is the index `row * width + column`?",
    ),
    _Rule(
        lambda f: f.place.in_block,
        "Is the tail masked? The last block extends past the end.",
        "Is the bounds check right? The last thread block extends past the end.",
    ),
    _Rule(
        _at("last_columns", "tail", "one"),
        "Only the end is wrong: is the tail masked, and is the grid rounded up?",
        "Only the end is wrong: is the bounds check right, and is the grid rounded up?",
    ),
    _Rule(
        _at("last_rows", "corner"),
        "Is there a program for every row, and does each one stay within its own row?",
        "Is the grid rounded up in both directions, and is the bounds check `row < height && column < width`?",
    ),
    _Rule(
        _at("after_first_block"),
        "The first block is right but the others are wrong: does every offset include `program_id` times the block "
        "size?",
        "The first thread block is right but the others are wrong: does every index include `blockIdx`?",
    ),
    _Rule(
        _at("first_element", "first_row", "head", "first_columns"),
        "Only the start is wrong: does the index start at 0, and does another program write here as well?",
        "Only the start is wrong: does the index start at 0, and does another thread write here as well?",
    ),
    _Rule(
        lambda f: f.at == "everything" and f.mismatch.total == 1,
        "Trace the smallest wrong case by hand: which inputs does its result depend on, and how are they combined?",
        vague=True,
    ),
    _Rule(
        _at("everything"),
        "Every element differs, so trace one by hand: which inputs should {first} depend on, and which does it use?",
        vague=True,
    ),
    _Rule(
        _at("scattered", "run", "rows", "columns"),
        "Trace {first} by hand: which inputs should it depend on, and do two programs write it?",
        "Trace {first} by hand: which inputs should it depend on, and do two threads write it?",
        vague=True,
    ),
)

OUTSIDE: tuple[_Rule, ...] = (
    _Rule(lambda f: f.wider > 0, _WIDER),
    _Rule(lambda f: f.side == "before", "Can an offset be negative?"),
    _Rule(lambda f: f.side == "between" and f.mismatch.wrong > 0, "Step from row to row with the stride, not with N."),
    _Rule(
        lambda f: f.side == "between",
        "Is the store masked at the end of each row?",
        "Do threads past the end of a row return before they write?",
    ),
    _Rule(
        lambda f: f.clues.branches_on_block and not f.cuda,
        "Is the store masked? An `if` on a block does not mask it: pass `mask=`.",
    ),
    _Rule(
        lambda f: (f.mismatch.outside, f.mismatch.wrong) == (1, 0) and not f.clues.branches_on_block,
        "One element too many: does the mask use `<`, not `<=`?",
        "One element too many: does the bounds check use `<`, not `<=`?",
    ),
    _Rule(
        lambda f: f.clues.either_bound,
        "",
        "The bounds check joins its conditions the wrong way. A thread writes if both hold, `row < height && column < "
        "width`, and returns if one fails, `row >= height || column >= width`.",
    ),
    _Rule(
        lambda f: f.cuda and len(f.mismatch.shape) == 2,
        "",
        "Does each thread check both `row < height` and `column < width` before it writes?",
    ),
    _Rule(
        lambda f: f.clues.masked_stores and not f.threads,
        "The store has a mask, but it is also true past the end. Compare the index at which each element is stored "
        "with its bound, along every axis, and join conditions with `&`.",
    ),
    _Rule(lambda f: True, "Is the store masked?", "Do threads without an element return before they write?"),
)
