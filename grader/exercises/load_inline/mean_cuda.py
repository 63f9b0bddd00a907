"""Reduce a vector to its mean in CUDA C++: each element is read once, and warps, blocks and the grid add their sums."""

from __future__ import annotations

from functools import partial
from typing import Any

from grader.exercise import Budget, Exercise, Gate, Rules, Suspect
from grader.exercises import means

_BLOCKS = tuple(1 << k for k in range(5, 11))  # usual numbers of threads per block
_LANES = 32


def _unsynchronised(a: Any) -> Any:
    """The simulator fills uninitialised memory with negative NaN, which GPU arithmetic never returns."""
    signed = "got" not in a or bool(a["got"].signbit().all())
    return a["x"][:1] * -float("nan") if signed and means.is_ones(a, full=True) else None


def _tail_repeated(a: Any) -> Any:
    """The output, if some whole warps of threads have each added the remaining elements."""
    n = a["x"].numel()
    left = n % 4
    if not left or not means.is_ones(a, full=False) or ("got" in a and not a["got"].isfinite().all()):
        return None
    threads = round((float(a["got"][0]) * n - (n - left)) / left) if "got" in a else 256
    return a["x"][:1] * ((n - left + left * threads) / n) if threads > 1 and threads % _LANES == 0 else None


def _of_one_block(count: float, n: int) -> bool:
    """Whether a block's worth of elements was counted, and not a share that missing shuffle steps explain."""
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
    simulator_cases=(*means.SIMULATOR_CASES, means.MANY_BLOCKS),
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
            "The result is NaN from uninitialised shared memory. Is there a `__syncthreads()` between the write and "
            "the read, and does each thread write its slot, with 0 if it has no element?",
            _unsynchronised,
        ),
        Suspect(
            "The result is NaN although every block is full. Memory is not initialised in CUDA: `out` holds NaN "
            "before the launch, so set it to 0 before you add to it, or store with `=`. Shared memory and scratch "
            "buffers are not initialised either. Also check reads past the end of `x`: a loop over `float4` ends at "
            "n / 4, not at n.",
            means.nan_where_full,
        ),
        Suspect(
            "The result is 0: is `1 / n` a division of two integers, which drops the fraction? Does the thread that "
            "writes hold the sum?",
            means.zero,
            breaks=means.SHORT_ONES,
        ),
        Suspect("This is the sum: it was not divided by n.", means.sum_of_all, relative=1e-4),
        Suspect(
            "The sum was divided by the number of blocks, not by n.",
            partial(means.divided_by_blocks, blocks=_BLOCKS[1:]),
            relative=1e-4,
        ),
        Suspect(
            "The sum was divided by the length rounded up to whole blocks. Threads past the end have no element: "
            "divide by n.",
            partial(means.divided_by_padded, blocks=_BLOCKS),
            relative=1e-4,
        ),
        Suspect(
            "The last elements are missing, those that do not fill a group of four or a block. They need a separate "
            "loop or a bounds check.",
            partial(means.tail_dropped, blocks=(4, 8, 16, *_BLOCKS)),
            relative=1e-4,
        ),
        Suspect(
            "Several threads added the elements that do not fill a group of four: only one thread may add each of "
            "them.",
            _tail_repeated,
            relative=1e-5,
        ),
        Suspect(
            "This is the mean of the block means. The last block has fewer elements, but its mean counts as much as "
            "the others: add sums, and divide once by n.",
            partial(means.mean_of_means, blocks=_BLOCKS),
            relative=1e-4,
        ),
        Suspect(
            "Only thread 0's own elements were counted: add the sums of the block's other threads to its sum. In the "
            "notebook's cell that is the task of `block_sum`.",
            partial(means.of_first_thread, smallest=_LANES),
            relative=1e-5,
            spares=("1 element",),
        ),
        Suspect(
            "Only one block's worth of elements was counted: does the index depend on `blockIdx`, does the loop "
            "continue to n, and are the sums of all blocks added?",
            lambda a: means.counted(a, 256 / means.FULL, _of_one_block),
            spares=means.SMALLER_THAN_A_BLOCK,
        ),
        Suspect(
            "Only a half (a quarter, an eighth, …) of the elements was counted. Is a step missing (in a warp: 16, 8, "
            "4, 2, 1)? Are the sums of all warps added? Does a block overwrite the sum of another? If each thread of "
            "the last step takes one sum, there may be more than a block has threads.",
            lambda a: means.counted(a, 0.5, lambda count, n: means.part_of_a_power(n, count) > 1),
        ),
        Suspect(
            "Some elements were counted more than once: does only one thread add the sum of its warp or block, and "
            "do all sums start at 0 in each launch?",
            lambda a: means.counted(a, 2.0, lambda count, n: count > n),
        ),
        Suspect(
            "Elements are missing although every block is full. Perhaps a thread read a sum before another had "
            "written it: is there a `__syncthreads()` before the first step of the tree and after each step? Or the "
            "last step adds fewer sums than there are blocks: there may be more than a block has threads. Or an "
            "index overflows: `blockIdx.x * n` has 32 bits.",
            lambda a: means.counted(a, 0.3, lambda count, n: count < n),
        ),
        Suspect(
            "One element is very large and the others were lost: a float32 next to it has no digits left for them. "
            "Do not add all values to one float32 in turn: let many threads add a few values each and add their "
            "sums, or use double.",
            means.others_lost,
            spares=means.SHORT_OR_ONES,
        ),
    ),
    rules=Rules(means.LIBRARY),
    hints=(
        "A thread starts at its index in the whole grid and steps by the number of threads in the grid.",
        "`reinterpret_cast<const float4*>(x)[i]` loads elements 4i to 4i + 3. If n is not a multiple of 4, up to "
        "three elements remain.",
        "A warp's sum ends up in lane 0. Lane 0 of each warp writes it to shared memory. After a barrier, the first "
        "warp adds these sums.",
        "The last block finds the sums of all blocks in `partials` and can add them as it added its elements.",
        "Several blocks per SM are enough. The grid must not be empty or have more blocks than `partials` has room "
        "for.",
    ),
    time_limit_s=180.0,  # torch's default headers take 20 s on a fast machine, 120 s on a busy slow one
    plot_axis="n, elements (float32)",
)  # fmt: skip
