"""Whether the GPU still does what it should, asked between two submissions, in the arbiter's own context."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

from grader.judge import memory
from grader.judge.machine import Machine

__all__ = ["BUSY", "GpuProbe", "probe", "settled"]

BUSY = "The GPU is busy or slow"

_COPIES = 7
_COPY_S = 1e-4  # of an undisturbed copy; one that waits for another process's turn on the GPU takes ten times that
_LEAST_BANDWIDTH = 1 / 3  # of what was measured when the judge began
_ELEMENTS = 1 << 20
_ANSWER_LIMIT_S = 10.0
_PAUSE_S = 0.05


class GpuProbe:
    """What `probe` asks of CUDA's device 0, by torch. Each may raise what CUDA says of a context that has failed."""

    def sum_up(self) -> int:
        """The sum of 3 i + 1 over `_ELEMENTS` numbers, by a kernel."""
        import torch

        total = torch.arange(_ELEMENTS, dtype=torch.int64, device="cuda").mul_(3).add_(1).sum()
        self._wait(torch)
        return int(total.item())

    def copy_seconds(self, size: int) -> list[float]:
        """Wall-clock seconds of each of some copies of `size` bytes. Each is waited for: it has to get its turn."""
        import torch

        source = torch.zeros(size, dtype=torch.uint8, device="cuda")
        target = torch.empty_like(source)
        self._wait(torch)
        seconds = []
        for _ in range(_COPIES):
            start = time.perf_counter()
            target.copy_(source)
            self._wait(torch)
            seconds.append(time.perf_counter() - start)
        return seconds

    def free_bytes(self) -> int:
        """Memory that this process could have."""
        return memory.available()

    def _wait(self, torch: Any) -> None:
        """Like a synchronisation, but it gives up."""
        event = torch.cuda.Event()
        event.record()
        limit = time.perf_counter() + _ANSWER_LIMIT_S
        while not event.query():
            if time.perf_counter() > limit:
                raise TimeoutError(f"it did not answer within {_ANSWER_LIMIT_S:.0f} s")


def probe(machine: Machine, gpu: GpuProbe | None = None) -> str:
    """What is wrong with the GPU, in a sentence; nothing where it is well, and in the simulator. 1 to 3 ms."""
    if machine.device != "cuda":
        return ""
    gpu = gpu or GpuProbe()
    try:
        got, expected = gpu.sum_up(), 3 * _ELEMENTS * (_ELEMENTS - 1) // 2 + _ELEMENTS
        if got != expected:
            return f"The GPU computes wrongly: a sum that is {expected} came out as {got}."
        size = max(1 << 20, min(int(machine.copy_gbps * 1e9 * _COPY_S / 2), gpu.free_bytes() // 8))
        gbps = 2 * size / median(gpu.copy_seconds(size)) / 1e9
    except Exception as error:  # whatever torch raises of a context that has failed
        return f"The GPU does not answer as it should ({type(error).__name__}): {_first_line(error)}"
    if gbps < _LEAST_BANDWIDTH * machine.copy_gbps:
        return f"{BUSY}: a copy reaches {gbps:.0f} GB/s, not {machine.copy_gbps:.0f} as before."
    return ""


def settled(
    machine: Machine,
    limit_s: float = 5.0,
    gpu: GpuProbe | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """`probe`, again and again until it finds nothing or `limit_s` has passed: what a killed worker ran takes its time.

    Returns what was wrong at last, or nothing. A first probe that finds nothing is the only one.
    """
    ends = time.monotonic() + limit_s
    while True:
        problem = probe(machine, gpu)
        if not problem or time.monotonic() >= ends:
            return problem
        sleep(_PAUSE_S)


def _first_line(error: Exception) -> str:
    line = (str(error).strip().splitlines() or ["no reason given"])[0]
    return line if line.endswith(".") else f"{line}."
