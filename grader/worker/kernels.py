"""Which kernels a call runs on the GPU; in the simulator, which operations of torch. A submission can lie here."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

__all__ = ["ran"]

_MOST_ROWS = 64
_MOST_CHARACTERS = 400
_NO_WORK = {"empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided", "set_", "copy_", "_to_copy"}


def ran(call: Callable[[], None]) -> list[dict[str, Any]]:
    """Calls once; up to 64 rows `{"name", "count", "microseconds"}`, longest together first.

    On a GPU: kernels, copies and fills, by torch's profiler; none where the profiler does not work. In the simulator:
    the operations of torch, as "aten::add.Tensor", that make or change floating-point tensors other than by copying.
    What `call` raises passes through.
    """
    simulated = os.environ.get("TRITON_INTERPRET") == "1"
    seen = _operations(call) if simulated else _kernels(call)
    rows: dict[str, dict[str, Any]] = {}
    for name, microseconds in seen:
        row = rows.setdefault(name, {"name": name, "count": 0, "microseconds": 0.0})
        row["count"] += 1
        row["microseconds"] += microseconds
    return sorted(rows.values(), key=lambda row: -row["microseconds"])[:_MOST_ROWS]


def _kernels(call: Callable[[], None]) -> list[tuple[str, float]]:
    import torch
    from torch.profiler import ProfilerActivity, profile

    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as session:
        call()
        torch.cuda.synchronize()
    events = [event for event in session.events() or [] if event.device_type.name == "CUDA"]
    kernels = [event for event in events if not getattr(event, "is_user_annotation", False)]
    return [(event.name[:_MOST_CHARACTERS], float(event.device_time)) for event in kernels]


def _operations(call: Callable[[], None]) -> list[tuple[str, float]]:
    import torch
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
                seen.append((name[:_MOST_CHARACTERS], 1e6 * (time.perf_counter() - begun)))
            return result

    with Watch():  # type: ignore[no-untyped-call]
        call()
    return seen
