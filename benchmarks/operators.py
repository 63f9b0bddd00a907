"""The cost of an operator: a leaky ReLU between two operations, PyTorch's or a custom one, eager and compiled.

Rows `operators`: `median_us` with the quartiles, and `kernels`, for 2^24 float32. The custom operator is the reference
solution.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import quantiles
from typing import Any

import torch

from benchmarks.kernels import load
from benchmarks.rows import Recorder
from benchmarks.timing import in_turn
from grader.exercises import find
from grader.explore import list_kernels

_SIZE, _SLOPE = 1 << 24, 0.1


def operators(recorder: Recorder) -> None:
    """Rows `operators`, one case per way."""
    with tempfile.TemporaryDirectory() as folder:
        own = load(find("leaky_relu_op"), Path(folder))
        _measure(recorder, {"PyTorch's leaky ReLU": torch.nn.functional.leaky_relu, "an operator of your own": own})


def _measure(recorder: Recorder, ways: dict[str, Callable[..., Any]]) -> None:
    x = torch.randn(_SIZE, device="cuda")
    wanted = torch.where(x > 0, 2 * x, 2 * _SLOPE * x) + 1
    calls: dict[str, Callable[[], Any]] = {}
    for name, function in ways.items():
        chain = _chain(function)
        for how, call in (("eager", chain), ("compiled", torch.compile(chain, fullgraph=True, dynamic=False))):
            if not torch.allclose(call(x), wanted):
                raise SystemExit(f"{name}, {how}: the result is wrong. No figure is written.")
            calls[f"{name}, {how}"] = functools.partial(call, x)
    for case, times in in_turn(calls).items():
        low, middle, high = quantiles(times, n=4)
        recorder.add("operators", case, "median_us", "µs", middle, low, high)
        recorder.add("operators", case, "kernels", "1", len(list_kernels(calls[case])))


def _chain(function: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda x: function(2 * x, _SLOPE) + 1
