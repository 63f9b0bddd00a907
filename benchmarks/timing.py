"""Times one call by the host's clock, and several peers in turn by CUDA events.

In turn, single calls are timed after a flush of the L2, or several calls in a row.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import torch

from grader.explore.memory.bandwidth_experiments import HEAD_START_CYCLES as HEAD_START_CYCLES

_REPEATS = 100
_WARM_UP = 5


def host_ms(call: Callable[[], Any]) -> float:
    """Return the milliseconds of one call and its work on the GPU, by the host's clock."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - start)


def in_turn(
    peers: Mapping[str, Callable[[], Any]], ahead_cycles: int = 0, repeats: int = _REPEATS, launches: int = 1
) -> dict[str, list[float]]:
    """Return the microseconds of each call, one list per peer. The peers' calls number i ran consecutively.

    The GPU idles for `ahead_cycles` before each call so that the host gets ahead. Then the host's time counts only if a
    call waits. With several `launches`, each entry is the mean of that many calls in a row, and the L2 is not flushed.
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
