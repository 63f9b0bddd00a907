"""The mean of a vector, for two exercises: cases, inputs, oracle, baselines, and the outputs of known bugs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from math import isfinite, log2
from typing import Any

from grader.exercise import Array, Baseline, Case

_SPIKE = 2.0**25  # the float32 spacing there is 4, so adding a value below 2 has no effect
FULL = 1 << 16  # a multiple of it fills blocks of every size
_NEAR = 0.005  # the error of float32 sums by atomics, small enough to tell what was counted
_KINDS = {", each of them 1": "ones", ", far from 0": "offset", ", one of them very large": "spike"}

LIBRARY = (
    "mean", "nanmean", "sum", "nansum", "cumsum", "dot", "vdot", "inner", "matmul", "mv", "einsum",
    "avg_pool1d", "adaptive_avg_pool1d", "var_mean", "std_mean", "segment_reduce",
)  # fmt: skip


def _case(n: int, note: str = "") -> Case:
    return Case(
        f"{n:,} element{'s' if n > 1 else ''}{note}", (Array("x", (n,)), Array("out", (1,), role="out", grows=None))
    )


def _cases(ones: int, prime: int) -> tuple[Case, ...]:
    sizes = (_case(1), _case(31), _case(775), _case(775, ", each of them 1"))
    large = (_case(prime, note) for note in ("", ", far from 0", ", one of them very large"))
    return tuple(sorted((*sizes, *large, _case(ones, ", each of them 1")), key=lambda case: case.arrays[0].shape))


# From small to large. For 2²⁴ ones, each sum and each sum / n is an exact float32, whatever the order of the additions.
CASES = _cases(1 << 24, 1_000_003)
SIMULATOR_CASES = _cases(4 * FULL, 100_003)  # 32 programs with blocks of 4,096 have two blocks each
MANY_BLOCKS = _case(
    18 * FULL, ", each of them 1"
)  # eight blocks for each of 132 SMs, and more than one can have threads
PAST_A_BLOCK = replace(_case((1 << 20) + 1), if_right=True)  # more elements than Triton's largest block has
TIMED = (_case(1 << 26),)
SMALLER_THAN_A_BLOCK = ("1 element", "31 elements")
FULL_BLOCKS = tuple(_case(n, ", each of them 1").name for n in (1 << 24, 4 * FULL))
SHORT_ONES = ("775 elements, each of them 1",)
SHORT_OR_ONES = (*SMALLER_THAN_A_BLOCK, "775 elements", *SHORT_ONES, *FULL_BLOCKS)
PLOT_CASES = tuple(_case(1 << k) for k in range(14, 29, 2))


def draw(case: Case, source: Any, machine: Any) -> dict[str, Any]:
    """The inputs of a case, whose name says their kind."""
    import torch

    kind = next((kind for note, kind in _KINDS.items() if case.name.endswith(note)), "normal")
    shape, where = case.arrays[0].shape, {"generator": source, "device": source.device}
    if kind == "ones":
        return {"x": torch.ones(shape, device=source.device)}
    if kind == "spike":
        x = 1.5 * torch.rand(shape, **where)
        x[0] = _SPIKE
        return {"x": x}
    x = torch.randn(shape, **where)
    if kind == "offset":  # spread widely: a float32 sum rounds similar values the same way
        x = 1_000 * x + 5_000 + 5_000 * torch.rand(1, **where)
    return {"x": x}


def oracle(inputs: Any) -> Any:
    """The mean, as a vector of one element."""
    return inputs["x"].mean(0, keepdim=True)


def _torch_mean(x: Any, out: Any) -> None:
    import torch

    torch.mean(x, 0, keepdim=True, out=out)


def _compiled_mean(x: Any, out: Any) -> None:
    import torch

    compiled = globals().get("_compiled")
    if compiled is None:
        torch._dynamo.config.recompile_limit = 64  # one compilation per size, since dynamic=False

        def mean(x: Any, out: Any) -> None:
            out.copy_(x.mean(0, keepdim=True))

        compiled = globals()["_compiled"] = torch.compile(mean, dynamic=False)
    compiled(x, out)


BASELINES = (Baseline("torch", "torch.mean", _torch_mean), Baseline("compile", "torch.compile", _compiled_mean))


# The outputs of bugs. If each element is 1, the mean is the share of elements that were counted.


def is_ones(a: Any, *, full: bool) -> bool:
    """Whether all elements are 1, and whether they fill every block."""
    x = a["x"]
    return x.numel() > 1 and (x.numel() % FULL == 0) == full and bool((x == 1).all())


def _fitting(a: Any, made: Iterable[Any]) -> Any:
    """The output nearest to the submission's, or the first."""
    candidates = [one.reshape(1) for one in made]
    if "got" in a and candidates:
        return min(candidates, key=lambda one: float((one - a["got"]).abs()))
    return next(iter(candidates), None)


def counted(a: Any, example: float, fits: Callable[[float, int], bool]) -> Any:
    """The output, if every block is full and `fits` accepts the number of counted elements."""
    if not is_ones(a, full=True):
        return None
    n = a["x"].numel()
    count = float(a["got"][0]) * n if "got" in a else example * n
    return a["x"][:1] * (count / n) if 0 < count < float("inf") and abs(count - n) > 0.5 and fits(count, n) else None


def part_of_a_power(whole: float, part: float) -> int:
    """The power of two that `whole / part` is, within the rounding of atomics, or 0."""
    if part <= 0 or whole < part:
        return 0
    near = 1 << round(log2(whole / part))
    return near if abs(whole / part / near - 1) <= _NEAR else 0


def nan_where_full(a: Any) -> Any:
    """NaN although no element was masked."""
    return a["x"][:1] * float("nan") if is_ones(a, full=True) else None


def zero(a: Any) -> Any:
    """0 in place of 1."""
    return a["x"][:1] * 0 if is_ones(a, full=True) else None


def sum_of_all(a: Any) -> Any:
    """The sum itself."""
    return a["x"].sum(0, keepdim=True)


def divided_by_blocks(a: Any, blocks: tuple[int, ...]) -> Any:
    """The sum divided by the number of blocks of one of these sizes."""
    n = a["x"].numel()
    return _fitting(a, (sum_of_all(a) / -(-n // block) for block in blocks if block < n)) if n > 1024 else None


def divided_by_padded(a: Any, blocks: tuple[int, ...]) -> Any:
    """The sum divided by the length rounded up to blocks of one of these sizes."""
    if not is_ones(a, full=False):
        return None
    n = a["x"].numel()
    return _fitting(a, (sum_of_all(a) / (-(-n // block) * block) for block in blocks))


def tail_dropped(a: Any, blocks: tuple[int, ...]) -> Any:
    """The mean without the elements that do not fill a block of one of these sizes."""
    x = a["x"]
    whole = sorted({x.numel() // step * step for step in blocks})
    return _fitting(a, (x[:n].sum() / x.numel() for n in whole if n)) if is_ones(a, full=False) else None


def mean_of_means(a: Any, blocks: tuple[int, ...]) -> Any:
    """The mean of the means of blocks of one of these sizes; the last block has fewer elements."""
    x, n = a["x"], a["x"].numel()
    if not 100 < n < 1 << 21 or x.mean().abs() >= x.std():  # far from 0 the means are almost equal
        return None
    parts = ((x[: n // size * size].reshape(-1, size), x[n // size * size :], size) for size in blocks)
    sums = ((whole.mean(1).sum() + rest.sum() / max(1, len(rest)), size) for whole, rest, size in parts)
    return _fitting(a, (total / -(-n // size) for total, size in sums))


def masked_counted(a: Any, smallest: int, *, as_one: bool) -> Any:
    """The output, if masked elements, in blocks of at least `smallest`, added something to the sum: 1 each, or not."""
    if not is_ones(a, full=False):
        return None
    n = a["x"].numel()
    extra = float(a["got"][0]) * n - n if "got" in a else smallest - n % smallest if as_one else -n / 2
    ones = extra > 0.5 and abs(extra - round(extra)) < 0.05 and (n + round(extra)) % smallest == 0
    return a["x"][:1] * ((n + extra) / n) if isfinite(extra) and abs(extra) > 0.01 and ones == as_one else None


def of_first_thread(a: Any, smallest: int) -> Any:
    """The mean, if only the elements of the first of `smallest` or more threads were added, one or four at a time."""
    x = a["x"]
    n = x.numel()
    if not 1 < n < 1000 or is_ones(a, full=False):
        return None
    own = [x[:: smallest << k].sum() for k in range(6)]
    tails = [x[n - n % 4 :].sum(), x[n - n % 4 : n - n % 4 + 1].sum(), 0 * x[0]]
    fours = [sum(x[at::step].sum() for at in range(4)) for step in (4 * smallest << k for k in range(6))]
    return _fitting(a, (one / n for one in (*own, *(four + tail for four in fours for tail in tails))))


def others_lost(a: Any) -> Any:
    """The mean without most of the values that were added after the large one."""
    x = a["x"]
    if float(x[0]) != _SPIKE:
        return None
    least, expected = x[:1] / x.numel(), x.mean(0, keepdim=True)
    between = "got" in a and bool((a["got"] >= 0.999 * least) & (a["got"] <= 0.999 * expected))
    return a["got"] if between else least
