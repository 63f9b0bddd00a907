"""Time of several peers in turn by CUDA events: of single calls, the L2 flushed before each, or of calls in a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from grader.explore.memory.bandwidth_experiments import HEAD_START_CYCLES

__all__ = ["HEAD_START_CYCLES", "in_turn"]

_REPEATS = 100
_WARM_UP = 5


def in_turn(
    peers: Mapping[str, Callable[[], Any]], ahead_cycles: int = 0, repeats: int = _REPEATS, launches: int = 1
) -> dict[str, list[float]]:
    """Microseconds of each call, one list a peer; call i of every peer was made one after the other.

    The GPU idles `ahead_cycles` before each, in which the host gets ahead: its own time counts only where a call waits.
    With several `launches` each entry is the mean of so many calls in a row. Nothing is flushed, and nothing gives the
    host a start: where it is slower than the GPU, its pace is what is timed.
    """
    flush = torch.empty(4 * torch.cuda.get_device_properties(0).L2_cache_size, dtype=torch.uint8, device="cuda")
    for call in peers.values():
        for _ in range(_WARM_UP):
            call()
    marks: dict[str, list[tuple[torch.cuda.Event, torch.cuda.Event]]] = {name: [] for name in peers}
    for _ in range(repeats):
        for name, call in peers.items():
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            if launches == 1:
                flush.zero_()
            if ahead_cycles:
                torch.cuda._sleep(ahead_cycles)
            start.record()
            for _ in range(launches):
                call()
            end.record()
            marks[name].append((start, end))
    torch.cuda.synchronize()
    return {name: [1e3 * start.elapsed_time(end) / launches for start, end in pairs] for name, pairs in marks.items()}
