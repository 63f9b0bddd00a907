"""Which kernels ran on the GPU in a call, by torch's profiler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

__all__ = ["KernelRun", "Kernels", "list_kernels"]


@dataclass(frozen=True)
class KernelRun:
    """One kernel of one call."""

    name: str
    time_us: float


@dataclass(frozen=True)
class Kernels:
    """The kernels of a call, in the order in which they ran; none where there is no GPU."""

    runs: tuple[KernelRun, ...]
    note: str = ""

    @property
    def total_us(self) -> float:
        return sum(run.time_us for run in self.runs)

    def __len__(self) -> int:
        return len(self.runs)

    def __repr__(self) -> str:
        if self.note:
            return self.note
        return "\n".join([*(f"{run.time_us:9.1f} µs  {run.name}" for run in self.runs), f"{self.total_us:9.1f} µs  together"])

    def _repr_html_(self) -> str:
        if self.note:
            return f"<p>{escape(self.note)}</p>"
        rows = [*((run.name, run.time_us) for run in self.runs), ("together", self.total_us)]
        left = "text-align:left; overflow-wrap:anywhere"
        body = "".join(f"<tr><td style='{left}'>{escape(n)}</td><td>{t:.1f} µs</td></tr>" for n, t in rows)
        return f"<table><tr><th style='{left}'>kernel</th><th>time</th></tr>{body}</table>"


def list_kernels(function: Callable[..., Any], *arguments: Any) -> Kernels:
    """Call `function(*arguments)` twice, and list the kernels of the second call (the first one warms up).

    Without a GPU nothing is run, and the answer says so.
    """
    import torch

    if not torch.cuda.is_available():
        return Kernels((), "Kernels can be listed only on a machine with a GPU. There is none here.")
    from torch.profiler import ProfilerActivity, profile

    function(*arguments)
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as session:
        function(*arguments)
        torch.cuda.synchronize()
    found = [event for event in session.events() or [] if event.device_type == torch.autograd.DeviceType.CUDA]
    found.sort(key=lambda event: event.time_range.start)
    return Kernels(tuple(KernelRun(event.name, float(event.device_time)) for event in found))
