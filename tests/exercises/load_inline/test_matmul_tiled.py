"""The float32 product: the budget accepts float32 sums in any order, and rejects TF32 and float16."""

from __future__ import annotations

import pytest
import torch

from grader.exercise import Case
from grader.exercises import EXERCISES
from grader.judge.checking.buffers import generator
from grader.judge.checking.compare import within

_TILED = EXERCISES["matmul_tiled"]
_NORMAL = [case for case in _TILED.cases if case.budget is not None]


def _drawn(case: Case) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    assert _TILED.draw is not None
    inputs = dict(_TILED.draw(case, generator("cpu"), None))
    expected = _TILED.oracle({name: value.double() for name, value in inputs.items()})
    return inputs["a"], inputs["b"], expected


def _one_step_at_a_time(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The sums of a kernel with one accumulator per element, in float32."""
    total = torch.zeros(a.shape[0], b.shape[1])
    for k in range(a.shape[1]):
        total += a[:, k : k + 1] * b[k : k + 1]
    return total


def _as_tf32(x: torch.Tensor) -> torch.Tensor:
    return ((x.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


@pytest.mark.parametrize("case", _NORMAL, ids=lambda case: case.name)
def test_float32_passes_and_the_formats_of_tensor_cores_fail(case: Case) -> None:
    """This holds for any draw, with the sums themselves in float32."""
    a, b, expected = _drawn(case)
    budget = case.budget or _TILED.budget
    assert within(_one_step_at_a_time(a, b), expected, budget).all()
    assert within(a @ b, expected, budget).all()
    assert not within(_as_tf32(a) @ _as_tf32(b), expected, budget).all()
    assert not within(a.half().float() @ b.half().float(), expected, budget).all()


def test_sums_of_the_integers_are_exact() -> None:
    """Each bug's output is then known exactly, and every sum in float32 is right."""
    for case in (case for case in _TILED.simulator_cases if case.budget is None):
        a, b, expected = _drawn(case)
        assert torch.equal(_one_step_at_a_time(a, b).double(), expected)
