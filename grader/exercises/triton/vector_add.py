"""Add two vectors: the smallest kernel that can be wrong, and a purely memory-bound one."""

from __future__ import annotations

from typing import Any

from grader.exercise import Array, Baseline, Budget, Case, Exercise, Gate, Rules, Suspect


def _case(n: int, fill: str = "normal") -> Case:
    arrays = (Array("x", (n,)), Array("y", (n,)), Array("out", (n,), role="out"))
    return Case(f"{n:,} elements" if n > 1 else "1 element", arrays, fill)


def _torch_add(x: Any, y: Any, out: Any) -> None:
    import torch

    torch.add(x, y, out=out)


def _compiled_add(x: Any, y: Any, out: Any) -> None:
    import torch

    compiled = globals().get("_compiled")
    if compiled is None:
        torch._dynamo.config.recompile_limit = 64  # one compilation per size, since dynamic=False

        def fused(x: Any, y: Any, out: Any) -> None:
            out.copy_(x + y)

        compiled = globals()["_compiled"] = torch.compile(fused, dynamic=False)
    compiled(x, y, out)


_CASES = (_case(1), _case(127), _case(1024), _case(1025), _case(98_432, "heavy"))

VECTOR_ADD = Exercise(
    id="vector_add",
    title="Add two vectors",
    chapter="03_triton",
    notebook="01_add_vectors",
    entry="vector_add",
    parameters=("x", "y", "out"),
    backend="triton",
    cases=(*_CASES, _case(1_000_003)),
    simulator_cases=_CASES,
    timed_cases=(_case(1 << 25, "normal|heavy"),),
    plot_cases=tuple(_case(1 << p) for p in range(16, 28)),
    oracle=lambda inputs: inputs["x"] + inputs["y"],
    budget=Budget(absolute=1e-30, relative=1e-6),
    bytes_moved=lambda case: 3 * 4 * case.arrays[0].shape[0],
    operations=lambda case: case.arrays[0].shape[0],
    correctness_points=3,
    baselines=(Baseline("torch", "torch.add", _torch_add), Baseline("compile", "torch.compile", _compiled_add)),
    gates=(Gate("torch", 0.95, 2, (_case(1 << 25).name,)),),
    suspects=(
        Suspect("The result is `x + x`: is `y` loaded from its own pointer?", lambda a: 2 * a["x"]),
        Suspect("The result is `y + y`: is `x` loaded from its own pointer?", lambda a: 2 * a["y"]),
        Suspect("The result is only `x`: is `y` added before the store?", lambda a: a["x"]),
        Suspect("The result is only `y`: is `x` added before the store?", lambda a: a["y"]),
        Suspect("The result is `x - y`: use a plus, not a minus.", lambda a: a["x"] - a["y"]),
        Suspect("The result is `x * y`: compute a sum, not a product.", lambda a: a["x"] * a["y"]),
    ),
    rules=Rules(("add", "addcmul", "__add__", "__radd__", "__iadd__")),
    hints=(
        "Each program handles one block, which starts at `program_id` times `BLOCK_SIZE`.",
        "The last block extends past the end unless n is a multiple of `BLOCK_SIZE`: mask both loads and the store.",
        "The grid needs `triton.cdiv(n, BLOCK_SIZE)` programs: rounded up, not down.",
    ),
    plot_axis="number of elements",
    plot_value=lambda case: case.arrays[0].shape[0],
)
