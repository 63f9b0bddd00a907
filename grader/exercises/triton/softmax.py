"""Fuse a softmax over rows: one read and one write instead of the eager sequence's eight passes."""

from __future__ import annotations

import math
from typing import Any

from grader.exercise import Array, Baseline, Budget, Case, Exercise, Gate, Rules, Suspect


def _case(rows: int, columns: int, fill: str = "normal", padding: tuple[int, int] = (0, 0), note: str = "") -> Case:
    arrays = (
        Array("x", (rows, columns), row_padding=padding[0]),
        Array("out", (rows, columns), role="out", row_padding=padding[1]),
    )
    return Case(f"{rows} × {columns}" + (f", {note}" if note else ""), arrays, fill)


def torch_softmax(x: Any, out: Any) -> None:
    import torch

    torch.softmax(x, dim=1, out=out)


def eager_sequence(x: Any, out: Any) -> None:
    import torch

    row_max = x.max(dim=1, keepdim=True).values  # reads MN, writes M
    shifted = x - row_max  # reads MN + M, writes MN
    numerator = torch.exp(shifted)  # reads MN, writes MN
    denominator = numerator.sum(dim=1, keepdim=True)  # reads MN, writes M
    torch.div(numerator, denominator, out=out)  # reads MN + M, writes MN


def compiled_softmax(x: Any, out: Any) -> None:
    import torch

    compiled = globals().get("_compiled")
    if compiled is None:
        torch._dynamo.config.recompile_limit = 64  # one compilation per size, since dynamic=False

        def fused(x: Any, out: Any) -> None:
            out.copy_(torch.softmax(x, 1))

        compiled = globals()["_compiled"] = torch.compile(fused, dynamic=False)
    compiled(x, out)


def no_max_subtracted(a: Any) -> Any:
    if a["x"].amax() < _ORDINARY:
        return None  # every result is NaN, as it is if masked elements win the maximum
    e = a["x"].float().exp()  # in float32 as in the kernel, where it overflows
    return (e / e.sum(1, keepdim=True)).double()


def _masked_with_zero(a: Any) -> Any:
    x = a["x"]
    padded = 1 << (x.shape[1] - 1).bit_length()
    if padded == x.shape[1] or x.abs().max() > _ORDINARY:
        return None
    row_max = x.amax(1, keepdim=True).clamp(min=0)
    e = (x - row_max).exp()
    return e / (e.sum(1, keepdim=True) + (padded - x.shape[1]) * (-row_max).exp())


def _masked_undefined(a: Any) -> Any:
    x = a["x"]
    if x.shape[1] == 1 << (x.shape[1] - 1).bit_length() or x.abs().max() > _ORDINARY:
        return None
    return x * float("nan")


def _divided_by_the_inputs(a: Any) -> Any:
    x = a["x"]
    if x.shape[1] == 1 or x.shape[1] != 1 << (x.shape[1] - 1).bit_length():
        return None  # one column: maximum equals sum; masked elements: -inf, so all is 0
    return (x - x.amax(1, keepdim=True)).exp() / x.sum(1, keepdim=True)


def _masked_won(a: Any) -> Any:
    """The output, if masked elements won the maximum of rows far below 0: NaN there, or 0 if they are in the sum."""
    x, expected = a["x"], a["expected"]
    lost = x.amax(1, keepdim=True) < -_ORDINARY
    counted = "got" not in a or not a["got"].isnan().any()
    return expected.masked_fill(lost, 0.0 if counted else math.nan)


def _share_of_each_row(a: Any) -> Any:
    """The output, if elements are masked and each row is the right one times a factor below 1."""
    x, expected = a["x"], a["expected"]
    if x.shape[1] == 1 << (x.shape[1] - 1).bit_length():
        return None
    got = a.get("got", expected * 0.9)
    share = got.sum(1, keepdim=True)
    same = got.isclose(share * expected, 1e-3, 1e-7).all()
    return got if bool(same and (share < 0.9999).all()) else None


def numerator_only(a: Any) -> Any:
    x = a["x"]
    return (x - x.amax(1, keepdim=True)).exp()


def first_row_everywhere(a: Any) -> Any:
    x = a["x"]
    return x[:1].softmax(dim=1).expand_as(x) if x.shape[0] > 1 else None


def logarithm(a: Any) -> Any:
    x = a["x"]
    return x.log_softmax(dim=1) if x.shape[1] > 1 else None


def all_one(a: Any) -> Any:
    return a["expected"] * 0 + 1


def of_the_negative(a: Any) -> Any:
    x = a["x"]
    return None if x.isinf().any() else (-x).softmax(dim=1)


def power_of_two(a: Any) -> Any:
    return (a["x"] * math.log(2)).softmax(dim=1)


def rounded_to_half(a: Any) -> Any:
    """The elements rounded to float16, and perhaps their difference from the maximum as well."""
    x = a["x"].half().double()
    if not bool(x.amax(1).isfinite().all()):
        return None
    difference = x - x.amax(1, keepdim=True)
    made = [each.softmax(dim=1) for each in (difference, difference.half().double())]
    fitting = [each for each in made if "got" in a and bool(each.isclose(a["got"], 1e-5, 1e-7).all())]
    return next(iter(fitting or made))


def right_but_for_a_factor(arrays: Any) -> Any:
    expected = arrays["expected"]
    if expected.shape[1] == 1:
        return None
    got = arrays.get("got", expected * 0.9)
    share = got.sum(1, keepdim=True)
    some = share.isfinite().all() and share.ne(0).all()
    same = some and got.isclose(share * expected, 1e-3, 1e-12).all()
    return got if bool(same) and not bool(share.isclose(share.new_ones(1), 1e-3).all()) else None


_ORDINARY = 80.0  # exp of a larger value overflows a float32
_NOTHING_MASKED = ("3 × 128",)  # a power of two
_SMALL_VALUES = ("3 × 128", "83 × 781", "260 × 33", "1823 × 781")
_FULL_ROWS = ("1 × 1", "3 × 128", "3 × 4096", "16 × 32768")  # powers of two
_TIMED = tuple(
    _case(rows, columns, "normal|large|below") for rows, columns in ((16_384, 781), (4096, 4096), (4096, 8192))
)

KINDS_OF_EXPONENTIAL = (
    Suspect(
        "This is the logarithm of the softmax: store the exponentials, divided by their sum.", logarithm, relative=1e-4
    ),
    Suspect(
        "Every element is 1: each exponential was divided by itself, not by the sum of its row. `tl.sum` reduces axis "
        "0 of a block that is one row, and axis 1 of a block of rows.",
        all_one,
    ),
    Suspect(
        "The sign in the exponential is wrong: this is the softmax of -x. Subtract the maximum from `x`, not `x` from "
        "the maximum.",
        of_the_negative,
    ),
    Suspect(
        "Powers of 2 were taken, not of e: `tl.exp2(x)` is 2 to the power of x. Use `tl.exp`, or multiply x by "
        "log2(e), 1.4426950408889634.",
        power_of_two,
        relative=1e-4,
    ),
    Suspect(
        "The elements were rounded to float16 before the exponential. Its error is then the rounding error of x: keep "
        "x in float32.",
        rounded_to_half,
        relative=1e-5,
    ),
)
RIGHT_BUT_FOR_A_FACTOR = Suspect(
    "Each row is right but for a factor. Do the numerator and all terms of the denominator belong to the same "
    "maximum? Is each element counted exactly once?",
    right_but_for_a_factor,
)
SOFTMAX = Exercise(
    id="softmax",
    title="Fuse a softmax",
    chapter="03_triton",
    notebook="03_fuse_a_softmax",
    entry="softmax",
    parameters=("x", "out"),
    backend="triton",
    cases=(
        _case(1, 1),
        _case(3, 128),
        _case(1823, 781),
        _case(64, 1000, "large", note="values up to ±10,000"),
        _case(64, 513, "below", note="every value far below zero"),
        _case(64, 300, "lowest", note="every value near -10³⁰"),
        _case(64, 333, "minus_inf", note="some values minus infinity"),
        _case(129, 200, padding=(56, 8), note="rows padded to 256 and to 208"),
        _case(16, 32_768),
    ),
    simulator_cases=(
        _case(1, 1),
        _case(3, 128),
        _case(83, 781),
        _case(260, 33),  # more rows than an int8 or a uint8 counts
        _case(16, 1000, "large", note="values up to ±10,000"),
        _case(16, 513, "below", note="every value far below zero"),
        _case(16, 300, "lowest", note="every value near -10³⁰"),
        _case(16, 333, "minus_inf", note="some values minus infinity"),
        _case(29, 200, padding=(56, 8), note="rows padded to 256 and to 208"),
        _case(3, 4096),
    ),
    timed_cases=_TIMED,
    plot_cases=tuple(_case(4096, n) for n in (256, 512, 781, 1024, 2048, 4096, 8192, 16384, 32768)),
    oracle=lambda inputs: inputs["x"].softmax(dim=1),
    budget=Budget(absolute=1e-9, relative=3e-5),
    bytes_moved=lambda case: 2 * 4 * case.arrays[0].shape[0] * case.arrays[0].shape[1],
    operations=lambda case: 5 * case.arrays[0].shape[0] * case.arrays[0].shape[1],
    correctness_points=4,
    baselines=(
        Baseline("torch", "torch.softmax", torch_softmax),
        Baseline("eager", "the eager sequence", eager_sequence),
        Baseline("compile", "torch.compile", compiled_softmax),
    ),
    gates=(
        Gate("eager", 4.0, 3, tuple(case.name for case in _TIMED[1:])),
        Gate("torch", 1.2, 3, tuple(case.name for case in _TIMED), or_share=0.9),
    ),
    suspects=(
        Suspect(
            "This is the softmax over columns, not rows: which axis do `tl.max` and `tl.sum` reduce, and which "
            "stride belongs to which index?",
            lambda a: a["x"].softmax(dim=0),
        ),
        Suspect(
            "The masked elements were counted: they were loaded as 0, so exp(0 - max) was added to the sum. Load "
            "them with `other=-float('inf')`.",
            _masked_with_zero,
            spares=_NOTHING_MASKED,
        ),
        Suspect(
            "The result is NaN only if elements are masked. Without `other`, a masked load returns undefined values: "
            "load them with `other=-float('inf')`. Also check that you subtract the maximum, `tl.max`.",
            _masked_undefined,
            spares=_NOTHING_MASKED,
        ),
        Suspect(
            "The row maximum was not subtracted: exp of a large value overflows to infinity, and exp of very small "
            "values is 0 for the whole row.",
            no_max_subtracted,
            spares=_SMALL_VALUES,
        ),
        Suspect(
            "The numerator was divided by the sum of `x`, not by the sum of the numerators.", _divided_by_the_inputs
        ),
        Suspect("The numerator was stored without division by its sum.", numerator_only),
        Suspect(
            "The masked elements won the maximum: some rows are far below 0, and a masked element was larger. Load "
            "them with `other=-float('inf')`.",
            _masked_won,
            spares=_FULL_ROWS,
        ),
        Suspect(
            "The masked elements were counted: each row is right but for a factor, and its sum is less than 1. Load "
            "them with `other=-float('inf')`, whose exp is 0.",
            _share_of_each_row,
            spares=_FULL_ROWS,
        ),
        Suspect(
            "Every row has the result of row 0: does the row's pointer depend on `program_id`?", first_row_everywhere
        ),
        *KINDS_OF_EXPONENTIAL,
        RIGHT_BUT_FOR_A_FACTOR,
    ),
    rules=Rules(
        ("softmax", "_softmax", "log_softmax", "_log_softmax", "softmin", "logsumexp", "exp", "Softmax", "LogSoftmax")
    ),
    hints=(
        "A program processes one row or several: load it once, keep it, and store it once.",
        "`tl.arange` needs a power of two: round N up with `triton.next_power_of_2` and mask the rest.",
        "Masked elements must not count: load them as minus infinity, whose exp is 0.",
        "Rows may be padded: step from row to row with the stride, not with N.",
        "A long row needs more warps per program: choose `num_warps`.",
    ),
    plot_axis="N, columns of a row (4096 rows, float32)",
    plot_value=lambda case: case.arrays[0].shape[1],
)
