"""The host's speed, compared with its fastest so far and with a usual host.

A core whose sibling hardware thread is busy runs at half speed, which adds up to 0.1 ms to a round. A submission is
stopped while a baseline runs, so it can hardly cause that: at most by GPU work that interrupts the host.
"""

from __future__ import annotations

import math
import time

from grader.exercise import Exercise

_STEPS = 1500  # some 40 µs
_TRIES = 3  # the fastest counts, to ignore interrupts
_STRAINED = 1.4  # times the least so far; a shared core takes 1.7 to 2 times as long
_USUAL_S = 6e-5  # for these steps on the busy hosts where the time limits were set
_LOOKS = 200  # some 30 ms


class HostSpeed:
    """Watches the speed of the core that the calling thread is on."""

    def __init__(self) -> None:
        self._least_s = math.inf

    def is_strained(self) -> bool:
        """Whether the processor is slow now. The first call returns False."""
        taken_s = min(_taken_s() for _ in range(_TRIES))
        self._least_s = min(self._least_s, taken_s)
        return taken_s > _STRAINED * self._least_s


def slowness() -> float:
    """Return the factor of all time limits: this processor's time over the usual time, at least 1."""
    return max(1.0, min(_taken_s() for _ in range(_LOOKS)) / _USUAL_S)


def whole_limit_s(exercise: Exercise, device: str, slowness: float) -> float:
    """Return the limit of import, cases and timing together; twice as long in a simulator."""
    return slowness * exercise.wall_limit_s * (1 if device == "cuda" else 2)


def _taken_s() -> float:
    began, total = time.perf_counter(), 0
    for step in range(_STEPS):
        total += step
    return time.perf_counter() - began
