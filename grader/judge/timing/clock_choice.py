"""The choice between two clocks: the arbiter's, which is noisy, and the worker's CUDA events, which it could forge.

The arbiter's clock is almost always late, rarely early. So a submission's events are compared with one of its fastest
rounds, and count if they claim at least that time less `AGREEMENT`; otherwise the arbiter's time counts. Rounds that
are faster than the median by more than the jitter are not used, because a trick may shorten a few of them.
"""

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

AGREEMENT = 0.005  # of the arbiter's time: the most that forged events gain if the clock has no noise
_AGREED = 1 / 7  # of the rounds, but at least two: the clock may be early in one
_ABSURD = 2.0  # times the arbiter's time: events that claim more are forged
OWN = "submission"
_DISTURBED = 1.01  # times a baseline's time alone: above that, something slows it
_DISTURBED_THROUGHOUT = 1.005  # the same for the median of its rounds in a case
_NOISE = 0.1  # noise of the host explains this difference between a submission's events and the arbiter's clock
_ASKED_ROUNDS, _HELD_UP_ROUNDS = 3, 2  # the first rounds of a case; so many of them must be late
_HELD_UP_JITTERS = 8  # times the usual jitter: more is not noise
_SURE = 1.3  # a gate is sure by this factor: some baselines vary by a few percent


@dataclass(frozen=True)
class Reading:
    """A round: seconds per launch by the arbiter's clock and by the worker's events (None: no valid time)."""

    arbiter_s: float
    events_s: float | None
    trusted: bool = False  # from a worker without a submission, whose events count
    jitter_s: float = math.inf  # the usual jitter of the host per launch; infinite if unknown

    def agrees_with(self, reference_s: float) -> bool:
        if self.trusted or self.events_s is None:
            return self.trusted
        return (1 - AGREEMENT) * reference_s <= self.events_s <= _ABSURD * self.arbiter_s


@dataclass(frozen=True)
class Counted:
    """Seconds per launch and their clock."""

    seconds: float
    clock: Literal["events", "arbiter"]


def counted(readings: Sequence[Reading]) -> list[Counted]:
    """Return the times that count of one worker's rounds in one case."""
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
    """Whether the events count in enough rounds; more rounds may help."""
    reference_s = held_against(readings) if readings else 0.0
    return sum(one.agrees_with(reference_s) for one in readings) >= _needed(len(readings))


def held_against(readings: Sequence[Reading]) -> float:
    """Return the arbiter's seconds per launch that events must reach: one of the fastest rounds, or the median less a
    jitter if that is more.
    """
    times = sorted(one.arbiter_s for one in readings)
    return max(times[: _needed(len(times))][-1], median(times) - median(one.jitter_s for one in readings))


def _needed(rounds: int) -> int:
    return max(2, math.ceil(_AGREED * rounds))


# Checks: baselines that were slowed, a clock that may run long, clocks that disagree.

Readings = Mapping[str, Mapping[str, Sequence[Reading]]]  # by case, then by peer
Alone = Callable[[str, str], float]  # a baseline's seconds alone, by case and baseline


def seconds_of(readings: Readings) -> dict[str, dict[str, list[float]]]:
    """Return the seconds per launch that count, by case and peer, one entry per trial."""
    return {
        case: {peer: [one.seconds for one in counted(found)] for peer, found in peers.items()}
        for case, peers in readings.items()
    }


def _claims(readings: Readings) -> dict[str, dict[str, list[float]]]:
    """Return the same with the submission's own claims, for cases in which it was timed."""
    return {
        case: peers | {OWN: [one.arbiter_s if one.events_s is None else one.events_s for one in readings[case][OWN]]}
        for case, peers in seconds_of(readings).items()
        if readings[case].get(OWN)
    }


def claims_less(readings: Readings) -> list[Finding]:
    """Report events that claim much less than the arbiter's clock: they are forged, or on another stream.

    While other processes use the GPU, the arbiter's clock is late for everybody. So what the baselines' rounds of the
    same case show of that, at their upper quartile, is subtracted first.
    """
    shares = []
    for peers in readings.values():
        trusted = [one for peer, found in peers.items() if peer != OWN for one in found]
        late_s = sorted(max(0.0, one.arbiter_s - one.events_s) for one in trusted if one.events_s is not None)
        usual_s = late_s[3 * (len(late_s) - 1) // 4] if late_s else 0.0
        for one in peers.get(OWN, ()):
            if one.events_s is not None:
                shares.append(one.events_s / max(one.arbiter_s - usual_s, one.events_s))
    if not shares or median(shares) >= 1 - _NOISE:
        return []
    return [Finding("clock", f"By its own CUDA events it took {median(shares):.2f} of the time that the judge "
                    "measured, which counts. Does something in it change the events, or which stream is the "
                    "current one?")]  # fmt: skip


def slow_rounds(readings: Readings, alone: Alone) -> list[tuple[str, str, int]]:
    """Return case, baseline and number of each round in which a baseline was slower than alone."""
    return [
        (case, peer, number)
        for case, peers in readings.items()
        for peer, found in peers.items()
        for number, one in enumerate(found)
        if peer != OWN and (one.events_s or 0.0) > _DISTURBED * alone(case, peer)
    ]


def not_alone(readings: Readings, alone: Alone) -> set[tuple[str, str, int]]:
    """Return the slow rounds, plus all rounds of cases in which a baseline is a little slower throughout.

    A stopped submission can keep the copy engines just busy enough that no single round counts as slow.
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
    """Whether a submission's rounds exceed its events by more than jitter, judged by a case's first rounds.

    Work that waits for the flag on several streams starts milliseconds late in most rounds. Or the events are forged.
    """
    late = [
        one.events_s is not None and one.arbiter_s - one.events_s > _HELD_UP_JITTERS * one.jitter_s
        for one in own[:_ASKED_ROUNDS]
    ]
    return sum(late) >= _HELD_UP_ROUNDS


def disputed(exercise: Exercise, readings: Readings, limits: score.Limits) -> bool:
    """Whether the submission's own events pass a gate that the counted times do not, and noise may be the reason."""
    seconds, claimed = seconds_of(readings), _claims(readings)
    return any(
        all(case in claimed and _noise(claimed[case][OWN], seconds[case][OWN], readings[case]) for case in gate.cases)
        and decide(score.margin(gate, seconds, limits), 1.0) != "passed"
        and decide(score.margin(gate, claimed, limits), 1.0) == "passed"
        for gate in exercise.gates
    )


def _noise(by_events: Sequence[float], by_clock: Sequence[float], peers: Mapping[str, Sequence[Reading]]) -> bool:
    """Whether noise of the host explains the difference: a small one, or as much as in this case's trusted rounds."""
    ours = [
        one.events_s / one.arbiter_s
        for peer, found in peers.items()
        if peer != OWN
        for one in found
        if one.events_s is not None
    ]
    quiet = min(1.0, median(ours)) if ours else 1.0
    return (1 - _NOISE) * quiet * median(by_clock) <= median(by_events) <= median(by_clock)


def sure(exercise: Exercise, readings: Readings, alone: Alone, limits: score.Limits) -> bool:
    """Whether every gate is clearly passed or failed, with the baselines' measured times and with their times alone."""
    cases = {name for gate in exercise.gates for name in gate.cases}
    if any(OWN not in readings.get(case, {}) for case in cases):
        return False
    most = seconds_of(readings)
    least = {case: {peer: list(values) for peer, values in peers.items()} for case, peers in most.items()}
    for case, peer, number in not_alone(readings, alone):
        least[case][peer][number] = alone(case, peer)
    return all(
        score.margin(gate, least, limits).low >= _SURE or score.margin(gate, most, limits).high < 1 / _SURE
        for gate in exercise.gates
    )
