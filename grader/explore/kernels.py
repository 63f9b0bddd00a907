"""Which kernels ran on the GPU in a call, by torch's profiler."""

from __future__ import annotations

import re
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

    @property
    def short_name(self) -> str:
        """The function's name, without its namespaces, template arguments and parameters."""
        name = self.name.removeprefix("void ").replace("(anonymous namespace)::", "")
        return re.split(r"[<(]", name, maxsplit=1)[0].rpartition("::")[2].strip() or self.name


@dataclass(frozen=True)
class Kernels:
    """The kernels of a call, in the order in which they ran; `note` says it where they did not run here."""

    runs: tuple[KernelRun, ...]
    note: str = ""

    def records(self, title: str) -> list[dict[str, Any]]:
        """Rows for a benchmark to record (with its machine), shown by `list_kernels(…, title=title)` without a GPU."""
        return [
            {"bench": "kernels", "case": f"{title}, {number}: {run.name}", "metric": "time_us", "unit": "µs"}
            | {"value": run.time_us, "low": None, "high": None}
            for number, run in enumerate(self.runs, start=1)
        ]

    @property
    def total_us(self) -> float:
        return sum(run.time_us for run in self.runs)

    def __len__(self) -> int:
        return len(self.runs)

    def __repr__(self) -> str:
        lines = [f"{run.time_us:9.1f} µs  {run.short_name}" for run in self.runs]
        total = [f"{self.total_us:9.1f} µs  together"] if self.runs else []
        return "\n".join([*lines, *total, *([self.note] if self.note else [])])

    def _repr_html_(self) -> str:
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        if not self.runs:
            return note
        rows = [*((run.short_name, run.name, run.time_us) for run in self.runs), ("together", "", self.total_us)]
        left, right = "text-align:left; overflow-wrap:anywhere", "text-align:right; white-space:nowrap"
        body = "".join(
            f"<tr><td style='{left}' title='{escape(full)}'>{escape(name)}</td>"
            f"<td style='{right}'>{time_us:.1f} µs</td></tr>"
            for name, full, time_us in rows
        )
        return f"<table><tr><th style='{left}'>kernel</th><th>time</th></tr>{body}</table>{note}"


def list_kernels(function: Callable[..., Any], *arguments: Any, title: str = "") -> Kernels:
    """Call `function(*arguments)` twice, and list the kernels of the second call (the first one warms up).

    Without a GPU nothing is run: what was recorded under `title` is listed instead, or that there is nothing.
    """
    import torch

    if not torch.cuda.is_available():
        return _recorded(title)
    from torch.profiler import ProfilerActivity, profile

    function(*arguments)
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as session:
        function(*arguments)
        torch.cuda.synchronize()
    found = [event for event in session.events() or [] if event.device_type.name == "CUDA"]
    found.sort(key=lambda event: event.time_range.start)
    return Kernels(tuple(KernelRun(event.name, float(event.device_time)) for event in found))


def _recorded(title: str) -> Kernels:
    from grader.explore.results import recorded

    found = recorded("kernels", "time_us")
    rows = [row for row in found.rows if str(row["case"]).startswith(f"{title}, ")]
    if not title:
        return Kernels((), "This needs a GPU: kernels can be listed only on a machine with a GPU.")
    if not rows:
        return Kernels((), "Kernels can be listed only on a machine with a GPU, and none were recorded yet.")
    runs = (KernelRun(str(row["case"]).partition(": ")[2], float(row["value"])) for row in rows)
    return Kernels(tuple(runs), found.origin)
