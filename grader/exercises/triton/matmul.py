"""Multiply two matrices: in tuned tiles, as fast as cuBLAS (the open exercise), and fused with a leaky ReLU."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from grader.exercise import Baseline, Exercise, Gate, Rules, Suspect
from grader.exercises.triton import products


def _cublas(a: Any, b: Any, out: Any) -> None:
    import torch

    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False  # sums in float32, as learners must
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
    suspects=products.suspects(),
    draw=products.draw,
    rules=Rules(products.LIBRARY),
    hints=(
        "A program computes one tile of `out`: `BLOCK_M` rows and `BLOCK_N` columns, in a float32 accumulator.",
        "A block of pointers has two axes: `a_ptr + rows[:, None] * stride_am + steps[None, :] * stride_ak`.",
        "Along K, mask the last step of both loads with `other=0.0`. Rows and columns past the edge may hold any "
        "readable values, for example those of `rows % M`, if the store masks them.",
        "The program index becomes a tile in grouped order: `GROUP` rows of tiles, column by column, and fewer rows "
        "in the last group.",
        "`tl.dot(a, b, accumulator)` multiplies and accumulates. Try tiles of 128 × 128 × 64 and larger, 4 or 8 "
        "warps, and 3 or 4 stages.",
    ),
    time_limit_s=150.0,  # each size is tuned: several configurations are compiled and timed
    wall_limit_s=180.0,
    limited_by="arithmetic",
    lacking=(products.NO_TENSOR_CORES,),
    plot_axis="N, rows and columns of each matrix (float16)",
)

SLOPE = 0.01  # of the leaky ReLU
_STEPS = (64, 32, 128, 16)


def _leaky(product: Any) -> Any:
    return product.where(product >= 0, SLOPE * product)


def _cublas_then_leaky(a: Any, b: Any, out: Any) -> None:
    import torch

    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False  # sums in float32, as learners must
    torch.mm(a, b, out=out)
    torch.nn.functional.leaky_relu_(out, 0.01)


def _compiled(a: Any, b: Any, out: Any) -> None:
    import torch

    compiled = globals().get("_compiled_product")
    if compiled is None:
        torch._dynamo.config.recompile_limit = 64  # one compilation per size, since dynamic=False
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False  # sums in float32

        def fused(a: Any, b: Any, out: Any) -> None:
            out.copy_(torch.nn.functional.leaky_relu(a @ b, 0.01))

        compiled = globals()["_compiled_product"] = torch.compile(fused, dynamic=False)
    compiled(a, b, out)


def _small(a: Any) -> bool:
    """Neither slow to compute, nor so small that another bug gives the same output."""
    (m, k), n = a["a"].shape, a["b"].shape[1]
    return bool(min(m, n, k) > 1 and m * n * k < products.LARGE)


def _without(a: Any) -> Any:
    return a["a"] @ a["b"] if _small(a) else None


def _plain_relu(a: Any) -> Any:
    return (a["a"] @ a["b"]).clamp(min=0) if _small(a) else None


def _other_way_round(a: Any) -> Any:
    found = _without(a)
    return None if found is None else found.where(found < 0, SLOPE * found)


def _other_slope(a: Any) -> Any:
    """The activation with the slope that the submission's output has."""
    found = _without(a)
    if found is None:
        return None
    slope = (a["got"] / found)[found < 0].median() if "got" in a else 0.1
    return found.where(found >= 0, slope * found)


def _in_each_step(a: Any) -> Any:
    """The activation applied to the partial sum after each step along K."""
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


MATMUL_LEAKY_RELU = replace(
    MATMUL,
    id="matmul_leaky_relu",
    title="Fuse a leaky ReLU into a product",
    entry="matmul_leaky_relu",
    oracle=products.oracle(_leaky),
    correctness_points=3,
    baselines=(
        Baseline("cublas", "cuBLAS, then leaky_relu_", _cublas_then_leaky),
        Baseline("compile", "torch.compile", _compiled),
    ),
    gates=(Gate("cublas", 1.0, 2, tuple(case.name for case in products.TIMED)),),
    suspects=(
        Suspect(
            "This is the product without the leaky ReLU: multiply negative results by 0.01 before you store them.",
            _without,
        ),
        Suspect("This is a ReLU: negative values became 0. A leaky ReLU multiplies them by 0.01.", _plain_relu),
        Suspect(
            "The positive values were multiplied by 0.01 and the negative ones were kept: do the reverse.",
            _other_way_round,
        ),
        Suspect(
            "The leaky ReLU was applied to partial sums, in each step along K: apply it after the loop.", _in_each_step
        ),
        *products.suspects(_leaky),
        Suspect("The slope is not 0.01: negative values were multiplied by another number.", _other_slope),
    ),
    hints=(
        "After the loop over K, the accumulator holds the float32 sums: `tl.where(accumulator > 0, accumulator, 0.01 "
        "* accumulator)`.",
        "Round to float16 once, after the activation.",
        "The activation itself costs almost nothing. The gains are in the product: tensor descriptors and a "
        "persistent grid.",
    ),
)


# The reference varies from 0.99 to 1.02 of cuBLAS between runs, so a gate at 1.0 would depend on chance.
_AS_FAST = 0.97

MATMUL_OPEN = replace(
    MATMUL,
    id="matmul_open",
    title="Multiply matrices as fast as cuBLAS",
    notebook="05_match_cublas",
    entry="matmul_open",
    correctness_points=3,
    lacking=(
        products.NO_TENSOR_CORES,
        (9.0, "This GPU has no unit for tensor descriptors (TMA), so they gain nothing: load tiles by pointers."),
    ),
    gates=(Gate("cublas", _AS_FAST, 4, tuple(case.name for case in products.TIMED)),),
    hints=(
        "Reuse the correct parts of `matmul`. Sizes and strides that a fast path does not support need another path.",
        "A tensor descriptor needs rows a multiple of 16 bytes apart, with contiguous elements.",
        "A persistent grid has one program per SM: `tl.range(tl.program_id(0), tiles, PROGRAMS, flatten=True)`.",
        "Large tiles read less: 128 × 256 × 64 with 8 warps and 3 stages. Storing half a tile at a time leaves room "
        "for a fourth stage.",
        "At 2048 there are few tiles: how many does the busiest SM compute?",
    ),
)
