"""Square a matrix in CUDA C++: grid, block, thread, bounds check, and a binding that builds in seconds."""

from __future__ import annotations

from typing import Any

from grader.exercise import Array, Baseline, Budget, Case, Exercise, Gate, Rules, Suspect


def _case(rows: int, columns: int, fill: str = "normal") -> Case:
    arrays = (Array("x", (rows, columns), grows=1), Array("out", (rows, columns), role="out", grows=1))
    return Case(f"{rows} × {columns}", arrays, fill)


def _torch_square(x: Any, out: Any) -> None:
    import torch

    torch.mul(x, x, out=out)


def _square_transposed(a: Any) -> Any:
    x = a["x"]
    return (x * x).t().reshape(x.shape) if min(x.shape) > 1 else None


_SMALL = (_case(1, 1), _case(3, 3), _case(37, 53))
_TIMED = (_case(8192, 8192, "normal|heavy"),)

SQUARE_MATRIX = Exercise(
    id="square_matrix",
    title="Square a matrix",
    chapter="02_load_inline",
    notebook="01_square_a_matrix",
    entry="square_matrix",
    parameters=("x", "out"),
    backend="cuda",
    cases=(*_SMALL, _case(1, 1000), _case(1000, 1), _case(1025, 769, "heavy")),
    simulator_cases=(*_SMALL, _case(1, 300), _case(300, 1), _case(65, 49, "heavy")),
    timed_cases=_TIMED,
    plot_cases=tuple(_case(n, n) for n in (256, 512, 1024, 2048, 4096, 8192, 16384)),
    oracle=lambda inputs: inputs["x"] * inputs["x"],
    budget=Budget(absolute=1e-30, relative=1e-6),
    bytes_moved=lambda case: 2 * 4 * case.arrays[0].shape[0] * case.arrays[0].shape[1],
    operations=lambda case: case.arrays[0].shape[0] * case.arrays[0].shape[1],
    correctness_points=3,
    baselines=(Baseline("torch", "x * x in torch", _torch_square),),
    gates=(Gate("torch", 0.95, 2, (_TIMED[0].name,)),),
    suspects=(
        Suspect("The values are right but transposed: is the index `row * width + column`?", _square_transposed),
        Suspect("The matrix was copied, not squared.", lambda a: a["x"]),
        Suspect("Each element was doubled, not squared.", lambda a: 2 * a["x"]),
    ),
    rules=Rules(("mul", "multiply", "square", "pow", "float_power")),
    hints=(
        "A thread's column is `blockIdx.x * blockDim.x + threadIdx.x`; its row is the same in y.",
        "The grid is rounded up, so some threads have no element and must do nothing.",
        "The grid is `(width + block.x - 1) / block.x` wide: rounded up, not down.",
    ),
    time_limit_s=180.0,  # torch's default headers take 20 s on a fast machine, 120 s on a busy slow one
    plot_axis="N, rows and columns of the matrix (float32)",
)
