"""Twenty small steps launched one by one, replayed as a CUDA graph, and compiled: rows `graphs`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.utils.benchmark import Timer

from benchmarks.rows import Recorder

_SHAPE = (8, 1024)
_CAPTURED = 5  # calls until `reduce-overhead` has compiled the function and captured its graph


def many_small_steps(x: torch.Tensor) -> torch.Tensor:
    """The function of the notebook 03_free_a_pipeline, whose kernels are shorter than their launches."""
    for _ in range(20):
        x = x * 0.99 + 0.01
    return x


def graphs(recorder: Recorder) -> None:
    """Record the wall time of one call, with its launches: they are what a graph saves."""
    x = torch.randn(_SHAPE, device="cuda")
    expected = many_small_steps(x)
    graph, result = captured(many_small_steps, x)
    compiled = torch.compile(many_small_steps, mode="reduce-overhead")
    graph.replay()
    for _ in range(_CAPTURED):
        compiled(x)
    for name, found in (("CUDA graph", result), ("reduce-overhead", compiled(x))):
        if not torch.allclose(found, expected, atol=1e-6):  # compiled, a product and a sum are rounded only once
            raise SystemExit(f"{name}: the result is wrong. No figure is written.")
    ways: dict[str, Callable[[], Any]] = {
        "eager": partial(many_small_steps, x),
        "CUDA graph": graph.replay,
        'torch.compile(…, mode="reduce-overhead")': partial(compiled, x),
    }
    for case, way in ways.items():
        times = Timer("way()", globals={"way": way}).blocked_autorange(min_run_time=1.0)
        recorder.add(
            "graphs", case, "median_us", "µs", 1e6 * times.median, 1e6 * min(times.times), 1e6 * max(times.times)
        )


def captured(function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> tuple[Any, torch.Tensor]:
    """Return a graph of `function(x)` and the tensor that holds the result after each replay."""
    cuda: Any = torch.cuda
    side = cuda.Stream()
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        function(x)  # warm up outside of the graph
    cuda.current_stream().wait_stream(side)
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        result = function(x)
    return graph, result
