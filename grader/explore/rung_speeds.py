"""How fast each rung of a reduction is: measured where there is a GPU, else as it was recorded on another machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from html import escape
from statistics import median
from typing import Any, Literal

from grader.explore.results import Recorded, recorded

__all__ = ["ELEMENTS", "TIMED", "RungSpeeds", "measure_rungs"]

ELEMENTS = 1 << 26
TIMED = ("atomics", "shuffles", "tree", "grid-stride")  # the slowest first
_REPEATS, _WARM_UP = 20, 3


@dataclass(frozen=True)
class RungSpeeds:
    """Bandwidth of the rungs (and of `torch.mean`), in GB/s of what is read."""

    how: Literal["measured", "recorded"]
    gbps: dict[str, float]
    table: Recorded | None = None

    def value(self, name: str) -> float | None:
        """GB/s, or None where it was neither measured nor recorded."""
        return self.gbps.get(name)

    def ratio(self, fast: str, slow: str) -> float | None:
        """How many times as fast one is as the other, where both are known."""
        both = fast in self.gbps and slow in self.gbps
        return self.gbps[fast] / self.gbps[slow] if both else None

    def __repr__(self) -> str:
        if self.table is not None:
            return repr(self.table)
        return "\n".join(f"{name:<14}{_number(gbps):>10} GB/s" for name, gbps in self.gbps.items())

    def _repr_html_(self) -> str:
        if self.table is not None:
            return self.table._repr_html_()
        cells = (
            f"<tr><td style='text-align:left'>{escape(name)}</td><td>{_number(gbps)}</td></tr>"
            for name, gbps in self.gbps.items()
        )
        return f"<table><tr><th style='text-align:left'>rung</th><th>GB/s, measured</th></tr>{''.join(cells)}</table>"


def _number(gbps: float) -> str:
    """Two digits at least: ratios are read from these."""
    return f"{gbps:.2g}" if gbps < 10 else f"{gbps:,.0f}"


def measure_rungs(n: int = ELEMENTS) -> RungSpeeds:
    """Time the rungs and `torch.mean` on `n` float32 elements: by events, the median of 20 launches.

    Without a GPU nothing is run, and what the bench `reductions` recorded is shown.
    """
    import torch

    if not torch.cuda.is_available():
        found = recorded("reductions", "bandwidth_gbps", "share_of_read")
        gbps = {row["case"]: row["value"] for row in found.rows if row["metric"] == "bandwidth_gbps"}
        return RungSpeeds("recorded", gbps, found)
    from grader.explore.rungs import launch

    x, out = torch.randn(n, device="cuda"), torch.zeros(1, device="cuda")
    blocks = 8 * torch.cuda.get_device_properties(0).multi_processor_count
    scratch = torch.empty(blocks, device="cuda")
    calls: dict[str, Callable[[], object]] = {name: partial(launch, name, x, out, scratch, blocks) for name in TIMED}
    calls["torch.mean"] = partial(torch.mean, x)
    return RungSpeeds("measured", {name: 4 * n / _seconds(call) / 1e9 for name, call in calls.items()})


def _seconds(call: Callable[[], object]) -> float:
    import torch

    cuda: Any = torch.cuda
    times: list[float] = []
    for number in range(_WARM_UP + _REPEATS):
        start, end = (cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        end.synchronize()
        if number >= _WARM_UP:
            times.append(start.elapsed_time(end) / 1e3)
    return median(times)
