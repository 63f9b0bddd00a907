"""The GPU's health between submissions: its memory, which others share, its answers and its speed."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any, TypeVar

import torch

from grader.errors import JudgeStopped
from grader.judge.gpu.ceilings import Machine

_Found = TypeVar("_Found")

SHORT = "Too little of the GPU's memory is free for the grader. Close other notebooks and try again."
_MOST = 12 << 30  # per arena: rounds of 5 ms at 5 TB/s move that much
_MOST_STAGED = 1 << 30  # the host copies all of it several times per round
_ONE_JUDGES = 24 << 30  # a card of this size has room for one judge
_SHARE = 0.15  # of that per arena: the private inputs and the oracle need as much again
_SHARE_BEYOND = 0.065  # of the free memory beyond: leaves room for four judges on 140 GiB
_GONE_S = 5.0  # time for the memory of an ended worker to become free
_NO_MEMORY = "out of memory", "alloc failed", "cublas status not initialized"  # with spaces for underscores
_LIKE_ARENAS = 3  # the inputs, the outputs, and the private inputs


class TooLittle(JudgeStopped):
    """Memory ran out with no submission alive. A new judge takes less, because less is free now."""


def arena_bytes(free: int, staged: bool = False) -> int:
    """Return the size of each arena, given the free memory; `staged`: each process has arenas of its own."""
    shared = min(_MOST, int(_SHARE * min(free, _ONE_JUDGES) + _SHARE_BEYOND * max(0, free - _ONE_JUDGES)))
    return min(_MOST_STAGED, shared // 2) if staged else shared


def beside_the_buffers(device: str) -> int | None:
    """Return the memory that arenas and private inputs leave for workers ahead; None in the simulator."""
    if device != "cuda":
        return None
    free = available()
    return free - _LIKE_ARENAS * arena_bytes(free)


def available() -> int:
    """Return the memory that this process can use: free memory, and torch's unused cache."""
    return int(torch.cuda.mem_get_info()[0] + torch.cuda.memory_reserved() - torch.cuda.memory_allocated())


def out_of_memory(error: BaseException | str) -> bool:
    """Whether an error, or the text of one, of torch, Triton, the driver or a library means that memory ran out."""
    text = str(error).lower().replace("_", " ")
    return type(error).__name__ == "OutOfMemoryError" or any(words in text for words in _NO_MEMORY)


def with_room(work: Callable[[bool], _Found], make_way: Callable[[], None]) -> _Found:
    """Return `work(False)`; if the judge or a baseline runs out of memory, call `make_way` and return `work(True)`.

    Raises TooLittle if that runs out of memory, too.
    """
    for again in (False, True):
        try:
            return work(again)
        except (RuntimeError, JudgeStopped) as error:  # torch's is a RuntimeError
            if not out_of_memory(error):
                raise
        make_way()
    raise TooLittle(SHORT)


def stays(short: Callable[[], bool], limit_s: float = _GONE_S) -> bool:
    """Whether memory stays short after the submission has ended, because others hold it."""
    ends = time.monotonic() + limit_s
    while short():
        if time.monotonic() >= ends:
            return True
        time.sleep(0.05)
    return False


# The probe, in the arbiter's own context.

BUSY = "The GPU is busy or slow"

_COPIES = 7
_COPY_S = 1e-4  # of an undisturbed copy; waiting for another process's time slice takes ten times as long
_LEAST_BANDWIDTH = 1 / 3  # of the bandwidth at the judge's start
_ELEMENTS = 1 << 20
_ANSWER_LIMIT_S = 10.0
_PAUSE_S = 0.05


class GpuProbe:
    """The measurements of `probe` on device 0. Each may raise CUDA's error if the context has failed."""

    def sum_up(self) -> int:
        """Return the sum of 3 i + 1 for i below `_ELEMENTS`, computed by a kernel."""
        total = torch.arange(_ELEMENTS, dtype=torch.int64, device="cuda").mul_(3).add_(1).sum()
        self._wait()
        return int(total.item())

    def copy_seconds(self, size: int) -> list[float]:
        """Return the wall-clock seconds of some copies of `size` bytes, waiting for each."""
        source = torch.zeros(size, dtype=torch.uint8, device="cuda")
        target = torch.empty_like(source)
        self._wait()
        seconds = []
        for _ in range(_COPIES):
            start = time.perf_counter()
            target.copy_(source)
            self._wait()
            seconds.append(time.perf_counter() - start)
        return seconds

    def free_bytes(self) -> int:
        return available()

    def _wait(self) -> None:
        """Synchronise with a time limit."""
        event: Any = torch.cuda.Event()  # type: ignore[no-untyped-call]
        event.record()
        limit = time.perf_counter() + _ANSWER_LIMIT_S
        while not event.query():
            if time.perf_counter() > limit:
                raise TimeoutError(f"it did not answer within {_ANSWER_LIMIT_S:.0f} s")


def probe(machine: Machine, gpu: GpuProbe | None = None) -> str:
    """Return a sentence on what is wrong with the GPU, or "" (always in the simulator). Takes 1 to 3 ms."""
    if machine.device != "cuda":
        return ""
    gpu = gpu or GpuProbe()
    try:
        got, expected = gpu.sum_up(), 3 * _ELEMENTS * (_ELEMENTS - 1) // 2 + _ELEMENTS
        if got != expected:
            return f"The GPU computes wrongly: a sum that is {expected} came out as {got}."
        size = max(1 << 20, min(int(machine.copy_gbps * 1e9 * _COPY_S / 2), gpu.free_bytes() // 8))
        gbps = 2 * size / median(gpu.copy_seconds(size)) / 1e9
    except Exception as error:  # torch's errors of a failed context have several types
        return f"The GPU does not answer as it should ({type(error).__name__}): {_first_line(error)}"
    if gbps < _LEAST_BANDWIDTH * machine.copy_gbps:
        return f"{BUSY}: a copy reaches {gbps:.0f} GB/s, not {machine.copy_gbps:.0f} as before."
    return ""


def settled(
    machine: Machine, limit_s: float = 5.0, gpu: GpuProbe | None = None, sleep: Callable[[float], None] = time.sleep
) -> str:
    """Repeat `probe` until it finds nothing or `limit_s` has passed, and return its last result.

    The work of a killed worker takes a while to end.
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
