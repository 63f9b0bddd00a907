"""The slowness of this machine, for the limits of tests: a limit of 20 seconds is written `20 * PACE`.

It is the wall-clock time of a piece of Python, relative to its usual time. Other processes and a container's share of
a processor therefore count like a slow processor.
"""

from __future__ import annotations

import time

__all__ = ["PACE"]

_STEPS = 2_500_000
_USUAL_S = 0.1  # for this many steps, on the hosts on which the limits were set
_MOST = 10.0  # so that a hang is found in reasonable time


def _measured() -> float:
    begun, total = time.perf_counter(), 0
    for step in range(_STEPS):
        total += step
    return min(_MOST, max(1.0, (time.perf_counter() - begun) / _USUAL_S))


PACE = _measured()
