"""How slow this machine is, for the limits of tests: a limit of 20 seconds is written `20 * PACE`.

It is the time that a piece of Python takes by the clock on the wall, compared with the usual: so other processes, and a
container that gets a share of a processor, count as well as a slow processor does.
"""

from __future__ import annotations

import time

__all__ = ["PACE"]

_STEPS = 2_500_000
_USUAL_S = 0.1  # for so many steps, on the hosts on which the limits were set
_MOST = 10.0  # a hang is to be found today


def _measured() -> float:
    begun, total = time.perf_counter(), 0
    for step in range(_STEPS):
        total += step
    return min(_MOST, max(1.0, (time.perf_counter() - begun) / _USUAL_S))


PACE = _measured()
