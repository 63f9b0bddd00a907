"""Matrix products: the cases, the oracle, and the compiled solutions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from grader.authoring.stubs import solution
from grader.exercise import Case
from grader.exercises import EXERCISES
from grader.exercises.triton import products
from grader.judge.checking.buffers import Buffers, generator
from grader.judge.checking.compare import within

ROOT = Path(__file__).resolve().parents[3]
_NORMAL = next(case for case in products.SIMULATOR_CASES if "normal" in case.name)
_BEYOND = next(case for case in products.SIMULATOR_CASES if "65,504" in case.name)
_TRANSPOSED = next(case for case in products.SIMULATOR_CASES if "transposed" in case.name)


def _drawn(case: Case) -> dict[str, torch.Tensor]:
    return products.draw(case, generator("cpu"), None)


def _in_steps(a: torch.Tensor, b: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The product as a kernel computes it, in steps of 32 along K, with sums of this type."""
    total = torch.zeros(a.shape[0], b.shape[1], dtype=dtype)
    for at in range(0, a.shape[1], 32):
        total += (a[:, at : at + 32].float() @ b[at : at + 32].float()).to(dtype)
    return total.half()


@pytest.mark.parametrize("case", [_NORMAL, _BEYOND], ids=["normal", "beyond"])
def test_sums_in_float16_fail_and_in_float32_pass(case: Case) -> None:
    """The budget separates the two for any draw."""
    for _ in range(5):
        inputs = _drawn(case)
        expected = products.oracle()({name: value.double() for name, value in inputs.items()})
        budget = case.budget or products.BUDGET
        assert within(_in_steps(inputs["a"], inputs["b"], torch.float32), expected, budget).all()
        assert not within(_in_steps(inputs["a"], inputs["b"], torch.float16), expected, budget).all()


@pytest.mark.parametrize("name", products.WHOLE)
def test_sums_in_float16_leave_whole_numbers_right(name: str) -> None:
    """A submission that is wrong there has a different bug, and the report does not mention float16."""
    case = next(case for case in products.CASES if case.name == name)
    inputs = _drawn(case)
    expected = products.oracle()({name: value.double() for name, value in inputs.items()})
    assert within(_in_steps(inputs["a"], inputs["b"], torch.float16), expected, products.BUDGET).all()
    (told,) = (each for each in EXERCISES["matmul"].suspects if "accumulator is a float16" in each.sentence)
    assert name in told.spares


def test_whole_numbers_have_exact_sums() -> None:
    """Except in two cases, every intermediate sum is a float16, so the output identifies its bug."""
    for case in products.SIMULATOR_CASES:
        if case in (_NORMAL, _BEYOND):
            continue
        inputs = {name: value.double() for name, value in _drawn(case).items()}
        largest = inputs["a"].abs() @ inputs["b"].abs()
        assert largest.max() <= 2048


def test_transposed_operands_are_views_of_the_arena() -> None:
    """Rows and columns are swapped in memory, and the drawn values are in the right places."""
    buffers = Buffers("simulator")
    layout = buffers.lay(_TRANSPOSED)
    buffers.fill(layout, products.draw)
    buffers.hand_over()
    m, n, k = products.TRANSPOSED
    slots = layout.launches[0]
    assert (slots["a"].shape, slots["a"].strides) == ((m, k), (1, m))
    assert (slots["b"].shape, slots["b"].strides) == ((k, n), (1, k))
    assert slots["out"].strides == (n, 1)
    assert torch.equal(buffers._view(slots["a"]), buffers._private(slots["a"]))
    assert buffers._private(slots["a"]).unique().tolist() == [-3, -2, -1, 0, 1, 2, 3]


@pytest.mark.parametrize(("missing", "said"), [(64, "some program must compute each tile"), (None, "")])
def test_what_was_never_written_is_explained(missing: int | None, said: str) -> None:
    """The report names missing tiles; if nothing was written, there is no suspect."""
    case = next(case for case in products.SIMULATOR_CASES if case.name == "128 × 128 × 128")
    buffers = Buffers("simulator")
    layout = buffers.lay(case)
    buffers.fill(layout, products.draw)
    buffers.poison(layout)
    slots = layout.launches[0]
    if missing is not None:
        right = buffers._private(slots["a"]).float() @ buffers._private(slots["b"]).float()
        buffers._view(slots["out"])[:, :missing] = right[:, :missing].half()
    found = buffers.check(layout, EXERCISES["matmul"])
    assert found is not None
    assert said in found.suspect
    assert bool(said) == bool(found.suspect)


def test_large_products_leave_the_precision_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU they are computed in float32 without TF32, and torch's setting is restored."""

    class OnGpu(torch.Tensor):
        is_cuda = True

        def float(self) -> Any:
            seen.append(backend.fp32_precision)
            return super().float()

    backend: Any = torch.backends.cuda.matmul
    seen: list[str] = []
    monkeypatch.setattr(products, "LARGE", 8)
    before = backend.fp32_precision
    backend.fp32_precision = "tf32"
    try:
        a = torch.ones(2, 2, dtype=torch.float64).as_subclass(OnGpu)
        found = products.product(a, a)
        left = backend.fp32_precision
    finally:
        backend.fp32_precision = before
    assert found.dtype == torch.float64
    assert bool((found == 2).all())
    assert seen == ["ieee", "ieee"]
    assert left == "tf32"


@pytest.mark.parametrize("exercise_id", ["matmul", "matmul_leaky_relu", "matmul_open"])
def test_tuned_solutions_have_time_to_be_tuned(exercise_id: str) -> None:
    """The first round compiles and times several configurations, so the limit is higher than usual."""
    exercise = EXERCISES[exercise_id]
    assert exercise.time_limit_s >= 100
    assert exercise.wall_limit_s >= 100


_COMPILED = """
import sys
sys.path.insert(0, sys.argv[1])
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
import reference

kernel = getattr(reference, sys.argv[2])
parts = 2 if sys.argv[2] == "persistent_kernel" else 1  # what it stores at once is half as wide
names = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "num_warps", "num_stages")
shapes = [tuple(shape[name] for name in names) for shape in (reference.LARGE, reference.SMALL)]
for block_m, block_n, block_k, warps, stages in shapes:
    blocks = {"a": (block_m, block_k), "b": (block_k, block_n), "out": (block_m, block_n // parts)}
    signature = {name: f"tensordesc<fp16[{rows}, {columns}]>" for name, (rows, columns) in blocks.items()}
    constants = {"PROGRAMS": 132, "BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k, "GROUP": 8}
    signature |= dict.fromkeys("MNK", "i32") | dict.fromkeys(constants, "constexpr")
    sixteens = {(number,): [["tt.divisibility", 16]] for number in (3, 4, 5)}
    source = ASTSource(kernel, signature, constants, sixteens)
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": warps, "num_stages": stages})
    ptx = made.asm["ptx"]
    print(ptx.count("wgmma.mma_async"), ptx.count("cp.async.bulk.tensor.2d.shared"),
          ptx.count("cp.async.bulk.tensor.2d.global"), ptx.count("ld.local"), made.metadata.shared)
"""


@pytest.mark.parametrize(
    ("exercise_id", "kernel"), [("matmul_open", "persistent_kernel"), ("matmul_leaky_relu", "fused_kernel")]
)
def test_the_last_rung_compiles_for_hopper(exercise_id: str, kernel: str, tmp_path: Path) -> None:
    """Both tile sizes use wgmma and TMA, do not spill, and fit shared memory."""
    (tmp_path / "reference.py").write_text(solution(exercise_id), encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TRITON_")}
    environment |= {"TRITON_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", _COMPILED, str(tmp_path), kernel]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [[int(word) for word in line.split()] for line in done.stdout.splitlines()]
    assert len(lines) >= 2
    for products_by_wgmma, loads, stores, spills, shared_bytes in lines:
        assert products_by_wgmma >= 1
        assert loads >= 2
        assert stores >= 1
        assert spills == 0
        assert shared_bytes <= 227 << 10
