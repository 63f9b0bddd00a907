"""Reduce a vector to its mean in CUDA C++: every element is read once, and sums meet in warps, blocks and the grid."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from grader.exercise import Array, Baseline, Budget, Case, Exercise, Gate, Rules, Suspect

__all__ = ["MEAN_CUDA"]

_SPIKE = 2.0**25  # float32 numbers lie 4 apart there: a value below 2 that is added to it is lost
_FULL = 1024  # a multiple of it fills blocks of every size
_BLOCKS = tuple(1 << k for k in range(5, 11))  # threads of a block, as learners choose them
_KINDS = {", each of them 1": "ones", ", far from 0": "offset", ", one of them very large": "spike"}


def _case(n: int, note: str = "") -> Case:
    name = f"{n:,} element{'s' if n > 1 else ''}{note}"
    return Case(name, (Array("x", (n,)), Array("out", (1,), role="out", grows=None)))


def _draw(case: Case, source: Any, machine: Any) -> dict[str, Any]:
    import torch

    kind = next((kind for note, kind in _KINDS.items() if case.name.endswith(note)), "normal")
    shape, where = case.arrays[0].shape, {"generator": source, "device": source.device}
    if kind == "ones":
        return {"x": torch.ones(shape, device=source.device)}
    if kind == "spike":
        x = torch.rand(shape, **where) + 0.5
        x[0] = _SPIKE
        return {"x": x}
    x = torch.randn(shape, **where)
    return {"x": x + 5_000 + 5_000 * torch.rand(1, **where) if kind == "offset" else x}


def _oracle(inputs: Any) -> Any:
    return inputs["x"].mean(0, keepdim=True)


def _torch_mean(x: Any, out: Any) -> None:
    import torch

    torch.mean(x, 0, keepdim=True, out=out)


def _compiled_mean(x: Any, out: Any) -> None:
    import torch

    compiled = globals().get("_compiled")
    if compiled is None:
        torch._dynamo.config.recompile_limit = 64  # one compilation a size, as dynamic=False asks

        def mean(x: Any, out: Any) -> None:
            out.copy_(x.mean(0, keepdim=True))

        compiled = globals()["_compiled"] = torch.compile(mean, dynamic=False)
    compiled(x, out)


# What a bug would write. Where each element is 1, the mean is the share of the elements that were counted.


def _ones(a: Any, *, full: bool) -> bool:
    x = a["x"]
    return x.numel() > 1 and (x.numel() % _FULL == 0) == full and bool((x == 1).all())


def _fitting(a: Any, made: Iterable[Any]) -> Any:
    """Of several outputs the one that is nearest to what was written; without it, the first."""
    candidates = [one.reshape(1) for one in made]
    if "got" in a and candidates:
        return min(candidates, key=lambda one: float((one - a["got"]).abs()))
    return next(iter(candidates), None)


def _counted(a: Any, example: float, fits: Any) -> Any:
    """What was written, where every block is full and `fits` says so of the number of elements that were counted."""
    if not _ones(a, full=True):
        return None
    n = a["x"].numel()
    count = float(a["got"][0]) * n if "got" in a else example * n
    return a["x"][:1] * (count / n) if count > 0 and abs(count - n) > 0.5 and fits(round(count), n) else None


def _uninitialised(a: Any) -> Any:
    return a["x"][:1] * float("nan") if _ones(a, full=True) else None


def _unsynchronised(a: Any) -> Any:
    """In the simulator, memory that nobody has written is NaN with its sign set, as no arithmetic of a GPU is."""
    signed = "got" not in a or bool(a["got"].signbit().all())
    return a["x"][:1] * -float("nan") if signed and _ones(a, full=True) else None


def _sum(a: Any) -> Any:
    return a["x"].sum(0, keepdim=True)


def _divided_by_blocks(a: Any) -> Any:
    n = a["x"].numel()
    return _fitting(a, (_sum(a) / -(-n // block) for block in _BLOCKS[1:])) if n > _BLOCKS[-1] else None


def _divided_by_padded(a: Any) -> Any:
    n = a["x"].numel()
    return _fitting(a, (_sum(a) / (-(-n // block) * block) for block in _BLOCKS)) if _ones(a, full=False) else None


def _tail_dropped(a: Any) -> Any:
    x = a["x"]
    whole = {x.numel() // step * step for step in (4, 8, 16, *_BLOCKS)}
    return _fitting(a, (x[:n].sum() / x.numel() for n in sorted(whole) if n)) if _ones(a, full=False) else None


def _tail_repeated(a: Any) -> Any:
    """What was written, where a number of threads that fills warps has each added the elements that are left over."""
    n = a["x"].numel()
    left = n % 4
    if not left or not _ones(a, full=False) or ("got" in a and not a["got"].isfinite().all()):
        return None
    threads = round((float(a["got"][0]) * n - (n - left)) / left) if "got" in a else 256
    return a["x"][:1] * ((n - left + left * threads) / n) if threads > 1 and threads % 32 == 0 else None


def _mean_of_means(a: Any) -> Any:
    x = a["x"]
    if not 100 < x.numel() < 1000 or _ones(a, full=False):
        return None
    means = ([block.mean() for block in x.split(size)] for size in _BLOCKS)
    return _fitting(a, (sum(each) / len(each) for each in means))


def _is_power(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


def _zero(a: Any) -> Any:
    return a["x"][:1] * 0 if _ones(a, full=True) else None


def _others_lost(a: Any) -> Any:
    """Of what was added after the large value, next to nothing is left."""
    x = a["x"]
    if float(x[0]) != _SPIKE:
        return None
    least, expected = x[:1] / x.numel(), x.mean(0, keepdim=True)
    between = "got" in a and bool((a["got"] >= 0.999 * least) & (a["got"] <= 0.999 * expected))
    return a["got"] if between else least


_TIMED = (_case(1 << 26),)

MEAN_CUDA = Exercise(
    id="mean_cuda",
    title="Reduce to a mean",
    chapter="02_load_inline",
    notebook="03_reduce_to_a_mean",
    entry="mean_cuda",
    parameters=("x", "out"),
    backend="cuda",
    cases=(
        _case(1),
        _case(31),
        _case(775),
        _case(775, ", each of them 1"),
        _case(12_582_912, ", each of them 1"),
        _case(1_000_003),
        _case(1_000_003, ", far from 0"),
        _case(1_000_003, ", one of them very large"),
    ),
    simulator_cases=(
        _case(1),
        _case(31),
        _case(775),
        _case(775, ", each of them 1"),
        _case(12_288, ", each of them 1"),
        _case(100_003),
        _case(100_003, ", far from 0"),
        _case(100_003, ", one of them very large"),
    ),
    timed_cases=_TIMED,
    plot_cases=tuple(_case(1 << k) for k in range(14, 29, 2)),
    draw=_draw,
    oracle=_oracle,
    budget=Budget(absolute=5e-7, relative=3e-5),
    bytes_moved=lambda case: 4 * case.arrays[0].shape[0] + 4,
    operations=lambda case: case.arrays[0].shape[0],
    correctness_points=3,
    baselines=(
        Baseline("torch", "torch.mean", _torch_mean),
        Baseline("compile", "torch.compile", _compiled_mean),
    ),
    gates=(Gate("torch", 0.95, 2, (_TIMED[0].name,)),),
    suspects=(
        Suspect(
            "The result is NaN, and it comes from shared memory that no thread had written when it was read: is there "
            "a `__syncthreads()` between writing and reading, and does every thread write its place, a 0 if it has no "
            "element?",
            _unsynchronised,
        ),
        Suspect(
            "The result is NaN, though every block is full here. Nothing begins at 0 in CUDA: `out` holds NaN before "
            "the launch. Set it to 0 before anything is added to it, or store with `=`. Shared memory and scratch "
            "buffers begin with anything, too. So does what lies past the end of `x`: a loop over `float4` goes to "
            "n / 4, not to n.",
            _uninitialised,
        ),
        Suspect(
            "The result is 0: is `1 / n` a division of two integers, which drops the fraction? And does the thread "
            "that writes hold the sum?",
            _zero,
        ),
        Suspect("This is the sum: it was not divided by n.", _sum, relative=1e-4),
        Suspect("The sum was divided by the number of blocks, not by n.", _divided_by_blocks, relative=1e-4),
        Suspect(
            "The sum was divided by the length rounded up to whole blocks: the threads past the end hold no element. "
            "Divide by n.",
            _divided_by_padded,
            relative=1e-4,
        ),
        Suspect(
            "The last elements were not counted, those that fill no group of four (or no block): what is left over "
            "needs a loop of its own, or a bounds check.",
            _tail_dropped,
            relative=1e-4,
        ),
        Suspect(
            "The elements that are left over by groups of four were added by many threads: each of them must be added "
            "by one thread alone.",
            _tail_repeated,
            relative=1e-5,
        ),
        Suspect(
            "This is the mean of the blocks' means. The last block has fewer elements, and its mean counts as much as "
            "the others': add sums, and divide once, by n.",
            _mean_of_means,
            relative=1e-4,
        ),
        Suspect(
            "Just as many elements were counted as a block has threads: does the index depend on `blockIdx`, does the "
            "loop go on until n, and are the sums of all blocks added?",
            lambda a: _counted(a, 256 / 12_288, lambda count, n: _is_power(count) and count <= _BLOCKS[-1]),
        ),
        Suspect(
            "Exactly a half (a quarter, an eighth, …) of the elements was counted. Is a step missing (in a warp they "
            "are 16, 8, 4, 2, 1)? Do the sums of all warps meet? Does no block overwrite what another has stored?",
            lambda a: _counted(a, 0.5, lambda count, n: n % count == 0 and _is_power(n // count)),
        ),
        Suspect(
            "Elements were counted more than once: does one thread alone add the sum of its warp or block, and does "
            "each launch begin with sums that are 0?",
            lambda a: _counted(a, 2.0, lambda count, n: count > n),
        ),
        Suspect(
            "Elements are missing although every block is full. A thread may have read a sum before another thread "
            "had written it: is there a `__syncthreads()` before the first step of the tree, and after each? Or there "
            "are more blocks than the last step adds up: their sums may be more than a block has threads.",
            lambda a: _counted(a, 0.3, lambda count, n: count < n),
        ),
        Suspect(
            "One element here is very large, and the others were lost: beside it a float32 has no digits left for "
            "them. Do not let one float32 take in all values one after the other: have many threads add up few "
            "each, then add their sums, or add in double.",
            _others_lost,
        ),
    ),
    rules=Rules(("mean", "nanmean", "sum", "nansum", "cumsum", "dot", "vdot", "inner", "matmul", "mv", "einsum",
                 "avg_pool1d", "adaptive_avg_pool1d", "var_mean", "std_mean", "segment_reduce")),
    hints=(
        "A thread begins at its number in the whole grid and steps by the number of threads of the whole grid.",
        "`reinterpret_cast<const float4*>(x)[i]` loads elements 4i to 4i + 3. What is left over when n is no multiple "
        "of 4 is at most three elements.",
        "A warp's sum ends in lane 0. Lane 0 of each warp writes it to shared memory; after a barrier, the first warp "
        "adds up what stands there.",
        "The last block finds the sums of all blocks in `partials`: it can add them up as it added its elements.",
        "Several blocks for each SM are enough. More than `partials` holds are too many, and 0 are refused.",
    ),
    time_limit_s=90.0,  # torch's default headers take 20 s on a fast machine, and a learner may well use them
    plot_axis="n, elements (float32)",
)  # fmt: skip
