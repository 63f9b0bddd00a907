"""Reduce a vector to its mean in CUDA C++: every element is read once, and sums meet in warps, blocks and the grid."""

from __future__ import annotations

from functools import partial
from typing import Any

from grader.exercise import Budget, Exercise, Gate, Rules, Suspect
from grader.exercises import means

_BLOCKS = tuple(1 << k for k in range(5, 11))  # threads of a block, as learners choose them
_LANES = 32


def _unsynchronised(a: Any) -> Any:
    """In the simulator, memory that nobody has written is NaN with its sign set, as no arithmetic of a GPU is."""
    signed = "got" not in a or bool(a["got"].signbit().all())
    return a["x"][:1] * -float("nan") if signed and means.is_ones(a, full=True) else None


def _tail_repeated(a: Any) -> Any:
    """What was written, where a number of threads that fills warps has each added the elements that are left over."""
    n = a["x"].numel()
    left = n % 4
    if not left or not means.is_ones(a, full=False) or ("got" in a and not a["got"].isfinite().all()):
        return None
    threads = round((float(a["got"][0]) * n - (n - left)) / left) if "got" in a else 256
    return a["x"][:1] * ((n - left + left * threads) / n) if threads > 1 and threads % _LANES == 0 else None


def _of_one_block(count: float, n: int) -> bool:
    """As many as a block has threads; a share that steps of shuffles could have left out is not meant."""
    return bool(means.part_of_a_power(count, 1)) and count < 1.01 * _BLOCKS[-1] and n / count > 1.01 * _LANES


MEAN_CUDA = Exercise(
    id="mean_cuda",
    title="Reduce to a mean",
    chapter="02_load_inline",
    notebook="03_reduce_to_a_mean",
    entry="mean_cuda",
    parameters=("x", "out"),
    backend="cuda",
    cases=means.CASES,
    simulator_cases=means.SIMULATOR_CASES,
    timed_cases=means.TIMED,
    plot_cases=means.PLOT_CASES,
    draw=means.draw,
    oracle=means.oracle,
    budget=Budget(absolute=5e-7, relative=3e-5),
    bytes_moved=lambda case: 4 * case.arrays[0].shape[0] + 4,
    operations=lambda case: case.arrays[0].shape[0],
    correctness_points=3,
    baselines=means.BASELINES,
    gates=(Gate("torch", 0.95, 2, (means.TIMED[0].name,)),),
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
            means.nan_where_full,
        ),
        Suspect(
            "The result is 0: is `1 / n` a division of two integers, which drops the fraction? And does the thread "
            "that writes hold the sum?",
            means.zero,
        ),
        Suspect("This is the sum: it was not divided by n.", means.sum_of_all, relative=1e-4),
        Suspect(
            "The sum was divided by the number of blocks, not by n.",
            partial(means.divided_by_blocks, blocks=_BLOCKS[1:]),
            relative=1e-4,
        ),
        Suspect(
            "The sum was divided by the length rounded up to whole blocks: the threads past the end hold no element. "
            "Divide by n.",
            partial(means.divided_by_padded, blocks=_BLOCKS),
            relative=1e-4,
        ),
        Suspect(
            "The last elements were not counted, those that fill no group of four (or no block): what is left over "
            "needs a loop of its own, or a bounds check.",
            partial(means.tail_dropped, blocks=(4, 8, 16, *_BLOCKS)),
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
            partial(means.mean_of_means, blocks=_BLOCKS),
            relative=1e-4,
        ),
        Suspect(
            "Just as many elements were counted as a block has threads: does the index depend on `blockIdx`, does the "
            "loop go on until n, and are the sums of all blocks added?",
            lambda a: means.counted(a, 256 / means.FULL, _of_one_block),
        ),
        Suspect(
            "A half (a quarter, an eighth, …) of the elements was counted. Is a step missing (in a warp they "
            "are 16, 8, 4, 2, 1)? Do the sums of all warps meet? Does no block overwrite what another has stored?",
            lambda a: means.counted(a, 0.5, lambda count, n: means.part_of_a_power(n, count) > 1),
        ),
        Suspect(
            "Elements were counted more than once: does one thread alone add the sum of its warp or block, and does "
            "each launch begin with sums that are 0?",
            lambda a: means.counted(a, 2.0, lambda count, n: count > n),
        ),
        Suspect(
            "Elements are missing although every block is full. A thread may have read a sum before another thread "
            "had written it: is there a `__syncthreads()` before the first step of the tree, and after each? Or there "
            "are more blocks than the last step adds up: their sums may be more than a block has threads.",
            lambda a: means.counted(a, 0.3, lambda count, n: count < n),
        ),
        Suspect(
            "One element here is very large, and the others were lost: beside it a float32 has no digits left for "
            "them. Do not let one float32 take in all values one after the other: have many threads add up few "
            "each, then add their sums, or add in double.",
            means.others_lost,
        ),
    ),
    rules=Rules(means.LIBRARY),
    hints=(
        "A thread begins at its number in the whole grid and steps by the number of threads of the whole grid.",
        "`reinterpret_cast<const float4*>(x)[i]` loads elements 4i to 4i + 3. What is left over when n is no multiple "
        "of 4 is at most three elements.",
        "A warp's sum ends in lane 0. Lane 0 of each warp writes it to shared memory; after a barrier, the first warp "
        "adds up what stands there.",
        "The last block finds the sums of all blocks in `partials`: it can add them up as it added its elements.",
        "Several blocks for each SM are enough. More than `partials` holds are too many, and 0 are refused.",
    ),
    time_limit_s=180.0,  # torch's default headers take 20 s on a fast machine, 120 s on a busy slow one
    plot_axis="n, elements (float32)",
)  # fmt: skip
