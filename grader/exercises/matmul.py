"""Multiply two matrices: a tile of the result a program, in an order that the L2 cache likes, and tuned."""

from __future__ import annotations

from typing import Any

from grader.exercise import Baseline, Exercise, Gate, Rules
from grader.exercises import products
from grader.exercises.product_suspects import suspects

__all__ = ["MATMUL"]


def _cublas(a: Any, b: Any, out: Any) -> None:
    import torch

    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False  # sums in float32, as is asked of others
    torch.mm(a, b, out=out)


MATMUL = Exercise(
    id="matmul",
    title="Multiply matrices",
    chapter="03_triton",
    notebook="04_multiply_matrices",
    entry="matmul",
    parameters=("a", "b", "out"),
    backend="triton",
    cases=products.CASES,
    simulator_cases=products.SIMULATOR_CASES,
    timed_cases=products.TIMED,
    plot_cases=products.PLOT_CASES,
    oracle=products.oracle(),
    budget=products.BUDGET,
    bytes_moved=products.bytes_moved,
    operations=products.operations,
    correctness_points=6,
    baselines=(Baseline("cublas", "cuBLAS", _cublas),),
    gates=(Gate("cublas", 0.8, 4, tuple(case.name for case in products.TIMED)),),
    suspects=suspects(),
    draw=products.draw,
    rules=Rules(products.LIBRARY),
    hints=(
        "A program computes one tile of `out`: `BLOCK_M` rows and `BLOCK_N` columns, in an accumulator of float32.",
        "A block of pointers has two axes: `a_ptr + rows[:, None] * stride_am + steps[None, :] * stride_ak`.",
        "Along K, mask the last step of both loads with `other=0.0`. Rows and columns past the edge may be anything "
        "that is there to be read, `rows % M` for one, as long as the store masks them.",
        "The program's number becomes a tile in grouped order: `GROUP` rows of tiles, column after column, and fewer "
        "rows in the last group.",
        "`tl.dot(a, b, accumulator)` adds to the accumulator as it multiplies. Tiles of 128 × 128 × 64 and larger, 4 "
        "or 8 warps, and 3 or 4 stages are worth a try.",
    ),
    time_limit_s=150.0,  # each size is tuned for: several configurations are compiled, and timed
    wall_limit_s=180.0,
    limited_by="arithmetic",
    plot_axis="N, rows and columns of each matrix (float16)",
)
