"""Counts with the judge's kernel in Triton's interpreter, which has to be asked for before Triton is imported."""

import json
import sys

import torch

from grader.exercise import Budget
from grader.judge.checking import fused_compare
from grader.judge.checking.compare import compare, within

NAN, INF = float("nan"), float("inf")
ODD = [0.0, -0.0, 1.0, -1.0, NAN, INF, -INF, 1e-300, -1e300, 5e-324, 1.5, 1e-9, 65504.0, 2.0**53]
WHOLE = [0.0, 1.0, 2.0, 255.0, 128.0, 0.5, 1.5, 254.5]  # integers hold only some of them
BUDGETS = [Budget(0.0, 0.0), Budget(1e-6, 1e-4), Budget(0.5, 0.0), Budget(1e-30, 1e-6), fused_compare._CHECK]


def counted(got, expected, budget):
    """By the kernel, by torch, and whether `compare` finds anything."""
    wrong, plane = torch.zeros((), dtype=torch.int64), fused_compare.planes(got, expected)
    fused_compare.launch(got, expected, budget, wrong, plane)
    return [int(wrong), int((~within(got, expected, budget)).sum()), compare("out", got, expected, budget) is not None]


def pairs(dtype, odd):
    """Every odd value against every other, and random ones, partly wrong by about the allowed error."""
    odd = torch.tensor(odd, dtype=torch.float64)
    yield odd.to(dtype).repeat(len(odd), 1), odd.repeat(len(odd), 1).t().contiguous()
    expected = 3 * torch.randn(70, 33, dtype=torch.float64).abs()
    off = 10 ** torch.empty_like(expected).uniform_(-8, 1)
    got = (expected + off * torch.randint(-1, 2, off.shape)).abs().to(dtype)
    yield got, expected
    yield got.t(), expected.t()
    yield got.t(), expected.reshape(33, 70)
    yield got[::2, :17], expected[1::2, 16:]
    yield got[:, 0], expected[:, 0]
    yield got[0], expected[0]
    yield got[5:6, 7:8], expected[5:6, 7:8]
    yield got.reshape(7, 10, 33), expected.reshape(7, 10, 33)
    exact = got.double()
    yield got, exact
    exact = exact.clone()
    exact[-1, -1] += 1
    yield got, exact


def rows_of(name):
    dtype = getattr(torch, name)
    odd = ODD if dtype.is_floating_point else WHOLE
    return [counted(got, expected, budget) for got, expected in pairs(dtype, odd) for budget in BUDGETS]


def main():
    torch.manual_seed(int(sys.argv[1]))
    found = {name: {"rows": rows_of(name), "agrees": fused_compare.agrees(name, "cpu")} for name in sys.argv[2:]}
    print(json.dumps(found))


main()
