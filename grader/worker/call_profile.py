"""List the kernels that a call runs on a GPU; in the simulator, the operations of torch.

A submission shares this process, so it can falsify the list. Workers on a GPU import this module before they make the
CUDA context. It must not import Inductor, which starts the driver: settings of the context would come too late.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

_MAX_ROWS = 64
_MAX_CHARACTERS = 400
_NO_WORK = {"empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided", "set_", "copy_", "_to_copy"}


def ran(call: Callable[[], None]) -> list[dict[str, Any]]:
    """Call once and return up to 64 rows `{"name", "count", "microseconds"}`, those with the longest total time first.

    On a GPU they are kernels, copies and fills by torch's profiler, or none if the profiler does not work. In the
    simulator they are operations of torch, such as "aten::add.Tensor", that make or change floating-point tensors other
    than by copying. Exceptions of `call` are passed on.
    """
    simulated = os.environ.get("TRITON_INTERPRET") == "1"
    seen = _operations(call) if simulated else _kernels(call)
    rows: dict[str, dict[str, Any]] = {}
    for name, microseconds in seen:
        row = rows.setdefault(name, {"name": name, "count": 0, "microseconds": 0.0})
        row["count"] += 1
        row["microseconds"] += microseconds
    return sorted(rows.values(), key=lambda row: -row["microseconds"])[:_MAX_ROWS]


def _kernels(call: Callable[[], None]) -> list[tuple[str, float]]:
    from torch.profiler import ProfilerActivity, profile

    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as session:
        call()
        torch.cuda.synchronize()
    events = [event for event in session.events() or [] if event.device_type.name == "CUDA"]
    kernels = [event for event in events if not getattr(event, "is_user_annotation", False)]
    return [(event.name[:_MAX_CHARACTERS], float(event.device_time)) for event in kernels]


_LAUNCH = {  # in a trace of torch's profiler; it asks CUDA's own occupancy calculator
    "grid": "grid", "block": "block", "registers": "registers per thread", "shared": "shared memory",
    "occupancy_percent": "est. achieved occupancy %",
}  # fmt: skip
_ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")


def launched(call: Callable[[], None]) -> list[dict[str, Any]]:
    """Call once on a GPU and return up to 64 rows, those with the longest total time first.

    A row is a kernel with one grid: "name", "count", "microseconds", and as far as the profiler knows them "grid",
    "block", "registers" per thread, "shared" bytes per block and "occupancy_percent". Copies and fills have only the
    first three. Exceptions of `call` are passed on.
    """
    from torch.profiler import ProfilerActivity, profile

    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as session:
        call()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        session.export_chrome_trace(str(path))
        return rows_of(json.loads(path.read_text(encoding="utf-8", errors="replace")))


def rows_of(trace: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of `launched`, from a trace that torch's profiler has exported."""
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for event in trace.get("traceEvents", []):
        if event.get("cat") in _ON_GPU:
            said = event.get("args", {})
            facts = {ours: said[theirs] for ours, theirs in _LAUNCH.items() if theirs in said}
            key = (event["name"], str(facts.get("grid")), str(facts.get("block")))
            row = rows.setdefault(key, {"name": event["name"][:_MAX_CHARACTERS], "count": 0, "microseconds": 0.0})
            row["count"] += 1
            row["microseconds"] += float(event.get("dur", 0.0))
            row |= facts
    return sorted(rows.values(), key=lambda row: -row["microseconds"])[:_MAX_ROWS]


def _operations(call: Callable[[], None]) -> list[tuple[str, float]]:
    from torch.utils._python_dispatch import TorchDispatchMode

    seen: list[tuple[str, float]] = []

    class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            begun = time.perf_counter()
            result = func(*args, **(kwargs or {}))
            name = func.name()
            made = result if isinstance(result, torch.Tensor) else None
            plain = name.removeprefix("aten::").partition(".")[0]
            if made is not None and made.is_floating_point() and made.dim() and plain not in _NO_WORK:
                seen.append((name[:_MAX_CHARACTERS], 1e6 * (time.perf_counter() - begun)))
            return result

    with Watch():  # type: ignore[no-untyped-call]
        call()
    return seen
