"""Reduce a vector to its mean in Triton: each program keeps a block of sums, and one more adds what they found."""

from __future__ import annotations

from functools import partial

from grader.exercise import Budget, Exercise, Gate, Rules, Suspect
from grader.exercises import means

_BLOCKS = tuple(1 << k for k in range(5, 17))  # lanes of a block, as learners choose them
_MOST_LANES = 1 << 14  # of a block that is likely to be all that was counted
_FEW = 32  # programs at the least: so many blocks a vector has for each that a whole block may be all that was counted


def _of_one_block(count: float, n: int) -> bool:
    return bool(means.part_of_a_power(count, 1)) and count < 1.01 * _MOST_LANES and n / count > 1.01 * _FEW


MEAN_TRITON = Exercise(
    id="mean_triton",
    title="Reduce to a mean in Triton",
    chapter="03_triton",
    notebook="02_reduce_to_a_mean",
    entry="mean_triton",
    parameters=("x", "out"),
    backend="triton",
    # First the one whose blocks are all full: what is NaN there was not begun at 0, elsewhere a mask may be missing.
    cases=(means.CASES[4], *means.CASES[:4], *means.CASES[5:]),
    simulator_cases=(means.SIMULATOR_CASES[4], *means.SIMULATOR_CASES[:4], *means.SIMULATOR_CASES[5:]),
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
            "The result is NaN, though every block is full here. Nothing begins at 0 on a GPU: `out` holds NaN before "
            "the launch, and a buffer from `torch.empty` anything. Store with `tl.store`, or set to 0 what is added "
            "to. Are there places among the partial sums that no program writes, and that are added?",
            means.nan_where_full,
        ),
        Suspect(
            "The result is NaN, and only where the last block is not full: it reads past the end of `x`. Mask the "
            "load, with `other=0.0`: what masked lanes hold is in the sum.",
            lambda a: a["x"][:1] * float("nan") if not means.is_ones(a, full=True) else None,
        ),
        Suspect("The result is 0: does the sum reach `out`? Is the number of programs 0?", means.zero),
        Suspect("This is the sum: it was not divided by n.", means.sum_of_all, relative=1e-4),
        Suspect(
            "This is the mean, divided by n once more. Divide in one of the two stages only: the other has 1 for its "
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
            "The sum was divided by the length rounded up to whole blocks: masked lanes hold no element. Divide by n.",
            partial(means.divided_by_padded, blocks=_BLOCKS),
            relative=1e-4,
        ),
        Suspect(
            "The last elements were not counted, those that fill no block: does the loop end at n? Is the number of "
            "blocks rounded up?",
            partial(means.tail_dropped, blocks=_BLOCKS),
            relative=1e-4,
        ),
        Suspect(
            "This is the mean of the blocks' means. The last block has fewer elements, and its mean counts as much as "
            "the others': add sums, and divide once, by n.",
            partial(means.mean_of_means, blocks=_BLOCKS),
            relative=1e-4,
        ),
        Suspect(
            "Just as many elements were counted as a block has lanes. Does each program store its sum to a place of "
            "its own? Where several store to one address, one of them is left. And is there a loop, or a program for "
            "every block?",
            lambda a: means.counted(a, 1024 / means.FULL, _of_one_block),
        ),
        Suspect(
            "A half (a quarter, an eighth, …) of the elements was counted. Does the second stage add all partial sums, "
            "also where there are more of them than it has lanes? Does the loop add to the sums (`+=`)? Does it step "
            "by the blocks of all programs, and no further? Does each program store its sum to a place of its own?",
            lambda a: means.counted(a, 0.5, lambda count, n: means.part_of_a_power(n, count) > 1),
        ),
        Suspect(
            "Elements were counted more than once: does the loop begin at the program's own block, and step by the "
            "blocks of all programs? Are sums of an earlier launch added again?",
            lambda a: means.counted(a, 2.0, lambda count, n: count > n),
        ),
        Suspect(
            "Elements are missing although every block is full. Does each program store its sum to a place of its "
            "own? Does the second stage add all of them? Does the loop begin at the program's own block, and leave "
            "none out?",
            lambda a: means.counted(a, 0.3, lambda count, n: count < n),
        ),
        Suspect(
            "One element here is very large, and the others were lost: beside it a float32 has no digits left for "
            "them. Do not let one float32 take in all values one after the other: keep a block of sums, one for each "
            "lane, and reduce it at the end with `tl.sum`.",
            means.others_lost,
        ),
    ),
    rules=Rules(means.LIBRARY),
    hints=(
        "Keep a block of sums, `tl.zeros((BLOCK_SIZE,), tl.float32)`, and add each block of elements to it: lane by "
        "lane, and no lane waits for another.",
        "A program begins at its own block, and steps by `tl.num_programs(0) * BLOCK_SIZE` elements.",
        "Masked lanes are in the sum: load them as 0.",
        "The second stage is one program. It may run the same kernel, on the partial sums, with n as the divisor.",
        "Several programs for each SM are enough. A block of some thousand lanes wants 8 warps.",
    ),
    plot_axis="n, elements (float32)",
)
