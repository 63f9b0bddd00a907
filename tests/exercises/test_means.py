"""The exercises on the mean: honest float32 sums pass in any order, and the report names the missing elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from grader.exercise import Budget
from grader.exercises import EXERCISES, means
from grader.judge.checking.buffers import generator
from grader.judge.checking.compare import suspected, within

BUDGET = EXERCISES["mean_cuda"].budget
HALF = Budget(BUDGET.absolute / 2, BUDGET.relative / 2)
LARGE = [case for case in means.CASES if case.arrays[0].shape[0] > 1000]
PARTS = (32, 64, 128, 256, 512, 1024)


def _inputs(case: Any) -> Any:
    return means.draw(case, generator("cpu"), None)["x"]


def _added(x: Any, size: int, order: Any, *, divided_first: bool) -> Any:
    """The mean if one float32 adds the sums of `size` elements in this order."""
    values = x.numpy()
    padded = np.concatenate([values, np.zeros(-len(values) % size, np.float32)])
    of_parts = padded.reshape(-1, size).sum(axis=1, dtype=np.float32)[order(-(-len(values) // size))]
    n = np.float32(len(values))
    total = np.cumsum(of_parts / n)[-1] if divided_first else np.cumsum(of_parts)[-1] / n
    return torch.tensor([float(total)])


@pytest.mark.parametrize("case", LARGE, ids=lambda case: case.name)
def test_honest_partial_sums_pass_in_every_order(case: Any) -> None:
    """One float32 atomic addition per warp or per block is well within the budget for a GPU's cases."""
    x = _inputs(case)
    expected = x.double().mean(0, keepdim=True)
    orders = (np.arange, np.random.default_rng(1).permutation)
    for size in PARTS:
        for order in orders:
            for divided_first in (True, False):
                got = _added(x, size, order, divided_first=divided_first)
                assert within(got, expected, HALF).all(), (size, divided_first)


def test_one_float32_for_all_elements_fails() -> None:
    """Added one by one, the vector with a very large element loses the others; the report says so."""
    case = next(each for each in LARGE if each.name.endswith("very large"))
    x = _inputs(case)
    expected = x.double().mean(0, keepdim=True)
    for divided_first in (True, False):
        got = _added(x, 1, np.arange, divided_first=divided_first)
        assert not within(got, expected, BUDGET).any()
        for exercise_id in ("mean_cuda", "mean_triton"):
            sentence = suspected(got, expected, {"x": x}, EXERCISES[exercise_id].suspects)
            assert "all values to one float32" in sentence


@pytest.mark.parametrize("part", [2, 4, 32])
def test_a_share_is_told_also_where_atomics_round(part: int) -> None:
    """A half, a quarter, … of the elements is recognised within half a per cent."""
    x = torch.ones(means.FULL)
    for exercise_id in ("mean_cuda", "mean_triton"):
        said = [_said(exercise_id, x, off / part) for off in (1, 1.003, 0.997)]
        assert all("a half (a quarter" in sentence for sentence in said), said
        assert "a half (a quarter" not in _said(exercise_id, x, 1.02 / part)


def test_one_block_is_told_from_a_share() -> None:
    """One block's worth of elements out of many has its own sentence, even with the rounding of atomics."""
    x = torch.ones(means.FULL)
    for exercise_id in ("mean_cuda", "mean_triton"):
        for off in (1, 1.003):
            assert "Only one block's worth of elements" in _said(exercise_id, x, off * 256 / means.FULL)
        assert "more than once" in _said(exercise_id, x, 3.0)
        assert "Elements are missing" in _said(exercise_id, x, 0.7)


def test_what_a_gpu_counts_of_its_many_ones_is_told_as_in_the_simulator() -> None:
    """The corpus of mistakes leaves out the same elements, but with smaller shares."""
    ones = next(case for case in means.CASES if case.arrays[0].shape[0] > means.FULL and "each of them 1" in case.name)
    n = ones.arrays[0].shape[0]
    x = torch.ones(n)
    told = {
        ("mean_cuda", 256): "Only one block's worth of elements",
        ("mean_cuda", n // 2): "a half (a quarter",
        ("mean_cuda", 32 * n): "more than once",
        ("mean_triton", 1024): "If several store to one address",
        ("mean_triton", 64 * 512): "Does the second stage add all partial sums",
        ("mean_triton", 32 * n - 512 * 1024): "more than once",
    }
    for (exercise_id, count), words in told.items():
        assert words in _said(exercise_id, x, count / n), (exercise_id, count)


def _said(exercise_id: str, x: Any, mean: float) -> str:
    one = torch.ones(1, dtype=torch.float64)
    return suspected(mean * one, one, {"x": x}, EXERCISES[exercise_id].suspects)
