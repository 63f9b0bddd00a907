"""Which of two clocks counts: the arbiter's, which nobody can forge, or the worker's events, which have no noise.

Noise makes a round longer by the arbiter's clock far more often than shorter: the host's part of it takes tens of
microseconds more, in one round or for seconds on end. So a submission's events are held against one of the fastest of
its rounds: if they claim at least its time, less `AGREEMENT`, they count; otherwise the arbiter's time does. A round
that is faster than the median by more than the host's jitter is not used for that: a trick may shorten a few rounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

__all__ = ["AGREEMENT", "Counted", "Reading", "counted", "enough", "held_against"]

AGREEMENT = 0.005  # of the arbiter's time: what a submission that forges its events can gain by a clock without noise
_AGREED = 1 / 7  # of the rounds, and two of them at least: a round may also be short by a slip of the clock
_ABSURD = 2.0  # times the arbiter's time: events that claim more are no honest ones


@dataclass(frozen=True)
class Reading:
    """A round: seconds a launch by the arbiter's clock, and by the worker's events (None: it claims no time)."""

    arbiter_s: float
    events_s: float | None
    trusted: bool = False  # a worker of ours, whose events count
    jitter_s: float = math.inf  # by how much the host's part varies as a rule, a launch; infinite where that is unknown

    def agrees_with(self, reference_s: float) -> bool:
        if self.trusted or self.events_s is None:
            return self.trusted
        return (1 - AGREEMENT) * reference_s <= self.events_s <= _ABSURD * self.arbiter_s


@dataclass(frozen=True)
class Counted:
    """Seconds a launch, and whose they are."""

    seconds: float
    clock: Literal["events", "arbiter"]


def counted(readings: Sequence[Reading]) -> list[Counted]:
    """What counts of the rounds of one worker in one case."""
    if not readings:
        return []
    reference_s = held_against(readings)
    return [
        Counted(one.events_s, "events")
        if one.events_s is not None and one.agrees_with(reference_s)
        else Counted(one.arbiter_s, "arbiter")
        for one in readings
    ]


def enough(readings: Sequence[Reading]) -> bool:
    """Whether the events count in as many rounds as it takes; more rounds may bring that about."""
    reference_s = held_against(readings) if readings else 0.0
    return sum(one.agrees_with(reference_s) for one in readings) >= _needed(len(readings))


def held_against(readings: Sequence[Reading]) -> float:
    """The arbiter's time that a submission's events are held against, in seconds a launch: of one of the fastest
    rounds, or what lies a jitter below the middle one where that is more.
    """
    times = sorted(one.arbiter_s for one in readings)
    return max(times[: _needed(len(times))][-1], median(times) - median(one.jitter_s for one in readings))


def _needed(rounds: int) -> int:
    return max(2, math.ceil(_AGREED * rounds))
