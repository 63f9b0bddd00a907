"""One call timed by several stopwatches, a sum with a cold and a warm L2, and a square in three ways."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from torch.utils.benchmark import Timer

from benchmarks.rows import Recorder
from benchmarks.timing import host_ms
from grader.explore.profiling.call_timing import busy_gpu, event_ms, time_after

_REPEATS = 30
_SQUARES = {
    "x * x": "torch.mul(x, x, out=out)",
    "x ** 2": "torch.pow(x, 2, out=out)",
    "torch.square(x)": "torch.square(x, out=out)",
}
_SIDE = 8192
_FLUSH_FLOATS = 1 << 26  # 256 MiB, more than any L2 cache
_MIB = (1, 4, 16, 64, 256)


def stopwatches(recorder: Recorder) -> None:
    """Rows `stopwatches` (`time_ms`), `warm_and_cold` (`warm_us`, `cold_us`) and `square_three_ways` (`median_ms`)."""
    call = busy_gpu().call()
    recorder.add("stopwatches", "synchronised, the first call", "time_ms", "ms", host_ms(call))
    shots = [host_ms(call) for _ in range(_REPEATS)]
    _add(recorder, "stopwatches", "synchronised, warmed up", "time_ms", "ms", shots)
    _add(recorder, "stopwatches", "events, warmed up", "time_ms", "ms", [event_ms(call) for _ in range(_REPEATS)])
    _add(recorder, "stopwatches", "not synchronised", "time_ms", "ms", [_launch_ms(call) for _ in range(_REPEATS)])
    _caches(recorder)
    x = torch.randn(_SIDE, _SIDE, device="cuda")
    out = torch.empty_like(x)
    for way, statement in _SQUARES.items():
        found = Timer(statement, globals={"x": x, "out": out}).blocked_autorange(min_run_time=1.0)
        times = [1e3 * seconds for seconds in found.times]
        _add(recorder, "square_three_ways", f"{way}, {_SIDE} × {_SIDE}", "median_ms", "ms", times)


def _caches(recorder: Recorder) -> None:
    other = torch.empty(_FLUSH_FLOATS, device="cuda")
    for mib in _MIB:
        x = torch.randn(mib << 18, device="cuda")
        for metric, before in (("warm_us", x.sum), ("cold_us", other.zero_)):
            times = [1e3 * ms for ms in time_after(before, x.sum, _REPEATS)]
            _add(recorder, "warm_and_cold", f"a sum over {mib} MiB", metric, "µs", times)


def _add(recorder: Recorder, bench: str, case: str, metric: str, unit: str, times: list[float]) -> None:
    """Add the median, with the quartiles as its range."""
    ordered, quarter = sorted(times), len(times) // 4
    recorder.add(bench, case, metric, unit, median(times), ordered[quarter], ordered[-1 - quarter])


def _launch_ms(call: Callable[[], Any]) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    return 1e3 * (time.perf_counter() - start)
