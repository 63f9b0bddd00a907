"""Multiply two matrices and put a leaky ReLU behind, in one kernel: what is in registers need not be read again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from grader.exercise import Baseline, Exercise, Gate, Rules, Suspect
from grader.exercises.triton import products
from grader.exercises.triton.products import suspects

# Multiply two matrices: a tile of the result a program, in an order that the L2 cache likes, and tuned.


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


# Multiply two matrices as fast as you can: the open exercise of the chapter, with a leaderboard.

# A little below parity. The reference was at 0.99 to 1.02 of cuBLAS from run to run: of 1.0 itself chance would decide.
_AS_FAST = 0.97

MATMUL_OPEN = replace(
    MATMUL,
    id="matmul_open",
    title="Multiply matrices as fast as cuBLAS",
    entry="matmul_open",
    correctness_points=3,
    gates=(Gate("cublas", _AS_FAST, 4, tuple(case.name for case in products.TIMED)),),
    hints=(
        "Take whatever of `matmul` is right. Sizes and strides that a fast way does not take need another way.",
        "A tensor descriptor wants rows that lie a multiple of 16 bytes apart, and neighbours along a row.",
        "A persistent grid has a program for each SM: `tl.range(tl.program_id(0), tiles, PROGRAMS, flatten=True)`.",
        "Large tiles read less: 128 × 256 × 64 with 8 warps and 3 stages. Storing half of a tile at a time leaves room "
        "for a fourth stage.",
        "At 2048 there are few tiles: how many does the SM have that works longest?",
    ),
)


# Multiply two matrices and put a leaky ReLU behind, in one kernel: what is in registers need not be read again.

SLOPE = 0.01  # for what is negative
_STEPS = (64, 32, 128, 16)


def _leaky(product: Any) -> Any:
    return product.where(product >= 0, SLOPE * product)


def _cublas_then_leaky(a: Any, b: Any, out: Any) -> None:
    import torch

    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False  # sums in float32, as is asked of others
    torch.mm(a, b, out=out)
    torch.nn.functional.leaky_relu_(out, 0.01)


def _compiled(a: Any, b: Any, out: Any) -> None:
    import torch

    compiled = globals().get("_compiled_product")
    if compiled is None:
        torch._dynamo.config.recompile_limit = 64  # one compilation a size, as dynamic=False asks
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False  # sums in float32, as for the others

        def fused(a: Any, b: Any, out: Any) -> None:
            out.copy_(torch.nn.functional.leaky_relu(a @ b, 0.01))

        compiled = globals()["_compiled_product"] = torch.compile(fused, dynamic=False)
    compiled(a, b, out)


def _small(a: Any) -> bool:
    """Neither slow to compute, nor so small that another bug may give the same."""
    (m, k), n = a["a"].shape, a["b"].shape[1]
    return bool(min(m, n, k) > 1 and m * n * k < products.LARGE)


def _without(a: Any) -> Any:
    return a["a"] @ a["b"] if _small(a) else None


def _plain_relu(a: Any) -> Any:
    return (a["a"] @ a["b"]).clamp(min=0) if _small(a) else None


def _other_way_round(a: Any) -> Any:
    found = _without(a)
    return None if found is None else found.where(found < 0, SLOPE * found)


def _in_each_step(a: Any) -> Any:
    """The activation of the sum so far, step after step along K."""
    k = a["a"].shape[1]
    if not _small(a):
        return None
    made = []
    for step in _STEPS:
        if k <= step:
            continue
        total = _leaky(a["a"][:, :step] @ a["b"][:step])
        for at in range(step, k, step):
            total = _leaky(total + a["a"][:, at : at + step] @ a["b"][at : at + step])
        made.append(total)
    fitting = [one for one in made if "got" in a and bool(one.isclose(a["got"], 1e-3, 1e-7).all())]
    return next(iter(fitting or made), None)


MATMUL_LEAKY_RELU = Exercise(
    id="matmul_leaky_relu",
    title="Fuse a leaky ReLU into a product",
    chapter="03_triton",
    notebook="04_multiply_matrices",
    entry="matmul_leaky_relu",
    parameters=("a", "b", "out"),
    backend="triton",
    cases=products.CASES,
    simulator_cases=products.SIMULATOR_CASES,
    timed_cases=products.TIMED,
    plot_cases=products.PLOT_CASES,
    oracle=products.oracle(_leaky),
    budget=products.BUDGET,
    bytes_moved=products.bytes_moved,
    operations=products.operations,
    correctness_points=3,
    baselines=(
        Baseline("cublas", "cuBLAS, then leaky_relu_", _cublas_then_leaky),
        Baseline("compile", "torch.compile", _compiled),
    ),
    gates=(Gate("cublas", 1.0, 2, tuple(case.name for case in products.TIMED)),),
    suspects=(
        Suspect(
            "This is the product alone: the leaky ReLU is missing. What is negative is to be multiplied by 0.01 before "
            "it is stored.",
            _without,
        ),
        Suspect(
            "This is a ReLU: what is negative became 0. A leaky one multiplies it by 0.01.",
            _plain_relu,
        ),
        Suspect(
            "What is positive was multiplied by 0.01, and what is negative was kept: the other way round.",
            _other_way_round,
        ),
        Suspect(
            "The leaky ReLU was applied to sums that were not complete, in each step along K: it belongs behind the "
            "loop.",
            _in_each_step,
        ),
        *suspects(_leaky),
    ),
    draw=products.draw,
    rules=Rules(products.LIBRARY),
    hints=(
        "Behind the loop over K the accumulator holds the sums in float32: `tl.where(accumulator > 0, accumulator, "
        "0.01 * accumulator)`.",
        "Round to float16 once, behind the activation.",
        "The activation itself costs next to nothing. What is left to gain is in the product: tensor descriptors and a "
        "persistent grid.",
    ),
    time_limit_s=150.0,  # each size is tuned for: several configurations are compiled, and timed
    wall_limit_s=180.0,
    limited_by="arithmetic",
    plot_axis="N, rows and columns of each matrix (float16)",
)
