"""A softmax in five ways, among them the TorchScript of the listing with which Triton 1.0 was announced.

Rows `softmaxes`: `kernels`, and the median µs for 4096 rows of `short` and of `long` columns, with the quartiles.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import quantiles
from typing import Any

import torch

from benchmarks.kernels import load
from benchmarks.rows import Recorder
from benchmarks.timing import in_turn
from grader.exercises import find
from grader.explore import list_kernels

_ROWS, _COLUMNS = 4096, {"short": 1024, "long": 8192}
_AHEAD_CYCLES = 2_000_000  # some 1 ms: more than the host needs for a scripted call
_WARM_UP = 5  # TorchScript profiles two calls, then it compiles


def published_softmax(x: torch.Tensor) -> torch.Tensor:
    """The published listing, except that it takes `exp` of `z` and not of `x`."""
    x_max = x.max(dim=1)[0]
    z = x - x_max[:, None]
    numerator = torch.exp(z)
    denominator = numerator.sum(dim=1)
    return numerator / denominator[:, None]


def softmaxes(recorder: Recorder) -> None:
    """Time all ways in turn, each call after a flush of the L2. An output that is wrong ends the bench."""
    with tempfile.TemporaryDirectory() as folder:
        own = load(find("softmax"), Path(folder))
        for title, columns in _COLUMNS.items():
            x = torch.randn(_ROWS, columns, device="cuda")
            expected = torch.softmax(x, 1)
            calls = {case: partial(way, x) for case, way in _ways(own, x).items()}
            for case, call in calls.items():
                for _ in range(_WARM_UP):
                    found = call()
                if not torch.allclose(found, expected, atol=1e-6):
                    raise SystemExit(f"{case}: the result is wrong. No figure is written.")
            for case, times in in_turn(calls, _AHEAD_CYCLES).items():
                low, middle, high = quantiles(times, n=4)
                recorder.add("softmaxes", case, f"{title}_rows_us", "µs", middle, low, high)
                if title == "short":
                    recorder.add("softmaxes", case, "kernels", "1", len(list_kernels(calls[case])))


def _ways(own: Callable[..., None], x: torch.Tensor) -> dict[str, Callable[[Any], Any]]:
    out = torch.empty_like(x)

    def triton(x: torch.Tensor) -> torch.Tensor:
        own(x, out)
        return out

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # TorchScript is deprecated
        scripted = torch.jit.script(published_softmax)
    return {
        "eager": published_softmax,
        "torch.jit.script": scripted,
        "torch.compile": torch.compile(published_softmax, dynamic=False),
        "torch.softmax": partial(torch.softmax, dim=1),
        "Triton": triton,
    }
