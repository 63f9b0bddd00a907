"""How fast the processor runs this thread, compared with the fastest that was seen, and with the usual.

A core whose other hardware thread is at work, for this machine or for a neighbour of a virtual one, runs at half its
speed, and what the host does in a round takes up to a tenth of a millisecond longer. Who stands still, as a submission
does while a baseline runs, can hardly bring that about: by interrupts from work that it has left on the GPU, at most.
"""

from __future__ import annotations

import math
import time

from grader.exercise import Exercise

_STEPS = 1500  # some 40 µs
_TRIES = 3  # of which the fastest counts: an interrupt is no slow processor
_STRAINED = 1.4  # times the least that was seen; a core that is shared takes 1.7 to 2 times as long
_USUAL_S = 6e-5  # for so many steps, on the hosts on which the time limits were set, beside other work
_LOOKS = 200  # some 30 ms


class Pace:
    """Watches the speed of whichever core the calling thread is on."""

    def __init__(self) -> None:
        self._least_s = math.inf

    def is_strained(self) -> bool:
        """Whether the processor is slow just now. The first to be seen is not."""
        taken_s = min(_taken_s() for _ in range(_TRIES))
        self._least_s = min(self._least_s, taken_s)
        return taken_s > _STRAINED * self._least_s


def slowness() -> float:
    """By what the time limits are multiplied here: how many times as long as usual the processor takes, at least 1."""
    return max(1.0, min(_taken_s() for _ in range(_LOOKS)) / _USUAL_S)


def whole_limit_s(exercise: Exercise, device: str, slowness: float) -> float:
    """How long import, cases and timing of a submission may be waited for together; in a simulator twice as long."""
    return slowness * exercise.wall_limit_s * (1 if device == "cuda" else 2)


def _taken_s() -> float:
    began, total = time.perf_counter(), 0
    for step in range(_STEPS):
        total += step
    return time.perf_counter() - began
