"""Checks on readings: baselines that were slowed, a clock that may run long, clocks that disagree."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from grader.exercise import Exercise
from grader.judge import score
from grader.judge.score import decide
from grader.verdict import Finding

# Which of two clocks counts: the arbiter's, which nobody can forge, or the worker's events, which have no noise.
#
# Noise makes a round longer by the arbiter's clock far more often than shorter: the host's part of it takes tens of
# microseconds more, in one round or for seconds on end. So a submission's events are held against one of the fastest of
# its rounds: if they claim at least its time, less `AGREEMENT`, they count; otherwise the arbiter's time does. A round
# that is faster than the median by more than the host's jitter is not used for that: a trick may shorten a few rounds.

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


# Checks on readings: baselines that were slowed, a clock that may run long, clocks that disagree.

OWN = "submission"
_DISTURBED = 1.01  # times what a baseline takes alone: then something slows it
_DISTURBED_THROUGHOUT = 1.005  # the same of the middle one of its rounds in a case
_NOISE = 0.1  # of its time by the arbiter's clock, a submission's events may claim less because the host is noisy
_ASKED_ROUNDS, _HELD_UP_ROUNDS = 3, 2  # the first ones of a case; so many of them must be late
_HELD_UP_JITTERS = 8  # times what a host varies by as a rule: more is no noise
_SURE = 1.3  # times what a gate asks, or that part of it: some baselines take a few percent more from time to time

Readings = Mapping[str, Mapping[str, Sequence[Reading]]]  # by case, then by peer
Alone = Callable[[str, str], float]  # seconds that a baseline takes alone, by case and baseline


def seconds_of(readings: Readings) -> dict[str, dict[str, list[float]]]:
    """Seconds a launch that count, one entry a trial, by case and peer."""
    return {
        case: {peer: [one.seconds for one in counted(found)] for peer, found in peers.items()}
        for case, peers in readings.items()
    }


def _claims(readings: Readings) -> dict[str, dict[str, list[float]]]:
    """The same by the submission's own events, where it has been timed; what it claims is not what counts."""
    return {
        case: peers | {OWN: [one.arbiter_s if one.events_s is None else one.events_s for one in readings[case][OWN]]}
        for case, peers in seconds_of(readings).items()
        if readings[case].get(OWN)
    }


def claims_less(readings: Readings) -> list[Finding]:
    """A submission whose own events claim much less than the arbiter's clock says: forged, or between two streams."""
    own = [one for peers in readings.values() for one in peers.get(OWN, ())]
    shares = [one.events_s / one.arbiter_s for one in own if one.events_s is not None]
    if not shares or median(shares) >= 1 - _NOISE:
        return []
    return [Finding("clock", f"By its own CUDA events it took {median(shares):.2f} of the time that the judge "
                    "measured, which counts. Does something in it change the events, or which stream is the "
                    "current one?")]  # fmt: skip


def slow_rounds(readings: Readings, alone: Alone) -> list[tuple[str, str, int]]:
    """Case, baseline and number of each round that took a baseline longer than it takes alone."""
    return [
        (case, peer, number)
        for case, peers in readings.items()
        for peer, found in peers.items()
        for number, one in enumerate(found)
        if peer != OWN and (one.events_s or 0.0) > _DISTURBED * alone(case, peer)
    ]


def not_alone(readings: Readings, alone: Alone) -> set[tuple[str, str, int]]:
    """The slow rounds, and all of a case in which a baseline is a little slower throughout: a submission can have the
    copy engines at work while it stands still, just so much that no single round is slow.
    """
    throughout = {
        (case, peer, number)
        for case, peers in readings.items()
        for peer, found in peers.items()
        if peer != OWN and found
        if median(one.events_s or 0.0 for one in found) > _DISTURBED_THROUGHOUT * alone(case, peer)
        for number, one in enumerate(found)
        if (one.events_s or 0.0) > alone(case, peer)
    }
    return throughout.union(slow_rounds(readings, alone))


def baseline_rounds(readings: Readings) -> int:
    return sum(len(found) for peers in readings.values() for peer, found in peers.items() if peer != OWN)


def held_up(own: Sequence[Reading]) -> bool:
    """Whether a submission's rounds take longer than its events say by more than a host is late: what waits for the
    flag on several streams begins milliseconds after it, but for a round now and then. Or the events are forged. Only
    the first rounds of a case are asked: by later ones nobody is graded anew.
    """
    late = [
        one.events_s is not None and one.arbiter_s - one.events_s > _HELD_UP_JITTERS * one.jitter_s
        for one in own[:_ASKED_ROUNDS]
    ]
    return sum(late) >= _HELD_UP_ROUNDS


def disputed(exercise: Exercise, readings: Readings) -> bool:
    """Whether a gate hangs on the two clocks: by the time that counts it is not passed, by the submission's own events
    it would be, and a noisy host may be all that lies between the two.
    """
    seconds, claimed = seconds_of(readings), _claims(readings)
    return any(
        all(case in claimed and _noise(claimed[case][OWN], seconds[case][OWN], readings[case]) for case in gate.cases)
        and decide(score.gate_ratio(gate, seconds), gate.at_least) != "passed"
        and decide(score.gate_ratio(gate, claimed), gate.at_least) == "passed"
        for gate in exercise.gates
    )


def _noise(by_events: Sequence[float], by_clock: Sequence[float], peers: Mapping[str, Sequence[Reading]]) -> bool:
    """Whether a noisy host may have made the one into the other: by a little, or by as much as the rounds of our own
    workers in this case are longer than their events say.
    """
    ours = [
        one.events_s / one.arbiter_s
        for peer, found in peers.items()
        if peer != OWN
        for one in found
        if one.events_s is not None
    ]
    quiet = min(1.0, median(ours)) if ours else 1.0
    return (1 - _NOISE) * quiet * median(by_clock) <= median(by_events) <= median(by_clock)


def sure(exercise: Exercise, readings: Readings, alone: Alone) -> bool:
    """Whether every gate is far from being passed or far from being failed, whatever of the baselines' rounds counts:
    what was measured, which is the most, or the less that they take alone.
    """
    cases = {name for gate in exercise.gates for name in gate.cases}
    if any(OWN not in readings.get(case, {}) for case in cases):
        return False
    most = seconds_of(readings)
    least = {case: {peer: list(values) for peer, values in peers.items()} for case, peers in most.items()}
    for case, peer, number in not_alone(readings, alone):
        least[case][peer][number] = alone(case, peer)
    return all(
        score.gate_ratio(gate, least).low >= _SURE * gate.at_least
        or score.gate_ratio(gate, most).high < gate.at_least / _SURE
        for gate in exercise.gates
    )
