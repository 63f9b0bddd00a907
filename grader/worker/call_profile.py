"""List the kernels that a call runs on a GPU; in the simulator, the operations of torch.

A submission shares this process, so it can falsify the list. Workers on a GPU import this module before they make the
CUDA context. It must not import Inductor, which starts the driver: settings of the context would come too late.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
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
