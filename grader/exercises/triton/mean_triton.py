"""Reduce a vector to its mean in Triton: each program keeps a block of sums, and a second stage adds their results."""

from __future__ import annotations

from functools import partial

from grader.exercise import Budget, Exercise, Gate, Rules, Suspect
from grader.exercises import means

_BLOCKS = tuple(1 << k for k in range(5, 17))  # usual numbers of elements per block
_LARGEST = 1 << 14  # if only one block was counted, it is at most this large
_FEW = 32  # programs at least: a vector has several blocks for each, so a single one is a small share


def _of_one_block(count: float, n: int) -> bool:
    return bool(means.part_of_a_power(count, 1)) and count < 1.01 * _LARGEST and n / count > 1.01 * _FEW


MEAN_TRITON = Exercise(
    id="mean_triton",
    title="Reduce to a mean in Triton",
    chapter="03_triton",
    notebook="02_reduce_to_a_mean",
    entry="mean_triton",
    parameters=("x", "out"),
    backend="triton",
    cases=means.CASES,
    simulator_cases=(*means.SIMULATOR_CASES, means.PAST_A_BLOCK),
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
            "The result is NaN although every block is full. Memory on a GPU is not initialised: `out` holds NaN "
            "before the launch, and a buffer from `torch.empty` holds anything. Store with `tl.store`, or set a sum "
            "to 0 before you add to it. Does the second stage add partial sums that no program writes?",
            means.nan_where_full,
        ),
        Suspect(
            "The result is NaN only if the last block is not full: it reads past the end of `x`. Mask the load with "
            "`other=0.0`, because masked elements are part of the sum.",
            lambda a: a["x"][:1] * float("nan") if not means.is_ones(a, full=True) else None,
            spares=means.FULL_BLOCKS,
        ),
        Suspect(
            "The result is 0: does the sum reach `out`, and is the number of programs above 0?",
            means.zero,
            breaks=means.SHORT_ONES,
        ),
        Suspect("This is the sum: it was not divided by n.", means.sum_of_all, relative=1e-4),
        Suspect(
            "This is the mean divided by n once more. Divide in only one of the two stages and use 1 as the other's "
            "divisor.",
            lambda a: means.oracle(a) / a["x"].numel() if a["x"].numel() > 1 else None,
            relative=1e-4,
        ),
        Suspect(
            "The sum was divided by the number of blocks, not by n.",
            partial(means.divided_by_blocks, blocks=_BLOCKS[1:]),
            relative=1e-4,
        ),
        Suspect(
            "The sum was divided by the length rounded up to whole blocks. Masked elements do not count: divide by n.",
            partial(means.divided_by_padded, blocks=_BLOCKS),
            relative=1e-4,
        ),
        Suspect(
            "The last elements, which do not fill a block, are missing: does the loop end at n, and is the number of "
            "blocks rounded up?",
            partial(means.tail_dropped, blocks=_BLOCKS),
            relative=1e-4,
        ),
        Suspect(
            "This is the mean of the block means. The last block has fewer elements, but its mean counts as much as "
            "the others: add sums, and divide once by n.",
            partial(means.mean_of_means, blocks=_BLOCKS),
            relative=1e-4,
        ),
        Suspect(
            "Each masked element added 1 to the sum. Masked elements are part of the sum: load them with `other=0.0`.",
            partial(means.masked_counted, smallest=_BLOCKS[0], as_one=True),
            relative=1e-6,
            spares=means.FULL_BLOCKS,
        ),
        Suspect(
            "The result is right if every block is full, and wrong if elements are masked: they are part of the sum, "
            "so load them with `other=0.0`, and divide by n.",
            partial(means.masked_counted, smallest=_BLOCKS[0], as_one=False),
            relative=1e-6,
            spares=means.FULL_BLOCKS,
        ),
        Suspect(
            "Only one block's worth of elements was counted. Does each program store its sum to its own address? If "
            "several store to one address, only one value is left. Is there a loop, or one program per block?",
            lambda a: means.counted(a, 1024 / means.FULL, _of_one_block),
        ),
        Suspect(
            "Only a half (a quarter, an eighth, …) of the elements was counted. Does the second stage add all "
            "partial sums, even if there are more than its block has elements? Does the loop add to the sums (`+=`) "
            "and step by the blocks of all programs? Does each program store its sum to its own address?",
            lambda a: means.counted(a, 0.5, lambda count, n: means.part_of_a_power(n, count) > 1),
        ),
        Suspect(
            "Some elements were counted more than once: does the loop start at the program's own block and step by "
            "the blocks of all programs? Are sums of an earlier launch added again?",
            lambda a: means.counted(a, 2.0, lambda count, n: count > n),
        ),
        Suspect(
            "Elements are missing although every block is full. Does each program store its sum to its own address? "
            "Does the second stage add all of them? Does the loop start at the program's own block and skip none?",
            lambda a: means.counted(a, 0.3, lambda count, n: count < n),
        ),
        Suspect(
            "One element is very large and the others were lost: a float32 next to it has no digits left for them. "
            "Do not add all values to one float32 in turn: keep a block of sums, one per element of the block, and "
            "reduce it at the end with `tl.sum`.",
            means.others_lost,
            spares=means.SHORT_OR_ONES,
        ),
    ),
    rules=Rules(means.LIBRARY),
    hints=(
        "Keep a block of sums, `tl.zeros((BLOCK_SIZE,), tl.float32)`, and add each block of elements to it, element "
        "by element, without waits.",
        "A program starts at its own block and steps by `tl.num_programs(0) * BLOCK_SIZE` elements.",
        "Masked elements are part of the sum: load them as 0.",
        "The second stage is one program. It can run the same kernel on the partial sums, with n as the divisor.",
        "Several programs per SM are enough. A block of a few thousand elements needs 8 warps.",
    ),
    plot_axis="n, elements (float32)",
    case_limit_s=45.0,  # without a GPU, a scan of a million elements takes 14 s on a fast machine
)
