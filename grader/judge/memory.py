"""The GPU's memory, which the judge shares with its workers, with learners' notebooks and with other judges."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from grader.errors import JudgeStopped

__all__ = [
    "SHORT", "TooLittle", "arena_bytes", "available", "beside_the_desk", "out_of_memory", "stays", "with_room",
]  # fmt: skip

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
