"""Whether the GPU still does what it should, asked between two submissions, in the arbiter's own context."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any, TypeVar

from grader.errors import JudgeStopped
from grader.judge.gpu.ceilings import Machine

# The GPU's memory, which the judge shares with its workers, with learners' notebooks and with other judges.

_Found = TypeVar("_Found")

SHORT = "Too little of the GPU's memory is free for the grader. Close other notebooks and try again."
_MOST = 12 << 30  # of an arena: rounds of 5 ms at 5 TB/s write and read that much
_ONE_JUDGES = 24 << 30  # a card of this size has room for one judge
_SHARE = 0.15  # of that, for each arena: the private inputs and the oracle need as much again
_SHARE_BEYOND = 0.065  # of what is free beyond: four judges on 140 GiB, at work together, then find what they need
_GONE_S = 5.0  # for the memory of a worker that was ended to be free
_NO_MEMORY = "out of memory", "alloc failed", "cublas status not initialized"  # the words, with blanks for underscores
_LIKE_ARENAS = 3  # the inputs, the outputs, and the private inputs


class TooLittle(JudgeStopped):
    """Memory ran out with nobody else's code alive: a judge that starts now takes less, for less is free."""


def arena_bytes(free: int) -> int:
    """How large each of the desk's arenas may be, where so much is free."""
    return min(_MOST, int(_SHARE * min(free, _ONE_JUDGES) + _SHARE_BEYOND * max(0, free - _ONE_JUDGES)))


def beside_the_desk(device: str) -> int | None:
    """What is free now and stays free of the desk and its private inputs: for workers ahead. None in the simulator."""
    if device != "cuda":
        return None
    free = available()
    return free - _LIKE_ARENAS * arena_bytes(free)


def available() -> int:
    """What this process could have: what is free, and what torch keeps for its reuse."""
    import torch

    return int(torch.cuda.mem_get_info()[0] + torch.cuda.memory_reserved() - torch.cuda.memory_allocated())


def out_of_memory(error: BaseException | str) -> bool:
    """torch's, which need not be imported for its name; or Triton's, the driver's or a library's, which have none of
    their own, or the text of one.
    """
    text = str(error).lower().replace("_", " ")
    return type(error).__name__ == "OutOfMemoryError" or any(words in text for words in _NO_MEMORY)


def with_room(work: Callable[[bool], _Found], make_way: Callable[[], None]) -> _Found:
    """What `work(False)` finds. Where the judge, or a baseline, runs out of memory: `work(True)`, after `make_way`.

    Raises:
        TooLittle: that runs out of memory, too.
    """
    for again in (False, True):
        try:
            return work(again)
        except (RuntimeError, JudgeStopped) as error:  # torch's is one of the first
            if not out_of_memory(error):
                raise
        make_way()
    raise TooLittle(SHORT)


def stays(short: Callable[[], bool], limit_s: float = _GONE_S) -> bool:
    """Whether memory is short though the submission has ended: then others hold it."""
    ends = time.monotonic() + limit_s
    while short():
        if time.monotonic() >= ends:
            return True
        time.sleep(0.05)
    return False


# Whether the GPU still does what it should, asked between two submissions, in the arbiter's own context.

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
        return available()

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
