"""From samples to timings, from timings to gates, from gates to points."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev
from typing import Literal

from grader.exercise import Case, Exercise, Gate
from grader.judge.gpu.ceilings import Machine
from grader.verdict import GateResult, Timing

# Medians with 95 % intervals that ask nothing of the distribution, where there are enough samples, and gates on them.
#
# Times have outliers on one side, and a submission can make as many slow ones as it likes. The order statistics around
# the median do not care how far off an outlier is, so noise cannot buy the benefit of the doubt.

_STUDENT = {3: 4.303, 4: 3.182, 5: 2.776}  # 97.5 % quantile of Student's t with n − 1 degrees of freedom, by n


@dataclass(frozen=True)
class Interval:
    """A median, and its 95 % interval."""

    middle: float
    low: float
    high: float


def interval(samples: Sequence[float]) -> Interval:
    """Of at least three samples, or the range of two. Of fewer than six the whole range covers the median in less than
    95 %: there it is widened to Student's t interval of the mean, but not below 0 where no sample is.

    As many samples lie below the true median as a coin that is tossed once for each shows heads: the ranks that may be
    left out on either side are those of a probability of at most 2.5 %.
    """
    ordered = sorted(samples)
    count, left_out = len(ordered), 0
    below = 1 / 2**count
    while (below := below + math.comb(count, left_out + 1) / 2**count) <= 0.025:
        left_out += 1
    low, high = ordered[left_out], ordered[count - 1 - left_out]
    if count in _STUDENT:
        middle, half = fmean(ordered), _STUDENT[count] * stdev(ordered) / math.sqrt(count)
        low = low if middle - half <= 0 < low else min(low, middle - half)
        high = max(high, middle + half)
    return Interval(median(ordered), low, high)


def quartile(samples: Iterable[float]) -> float:
    """One that a quarter of the samples do not exceed, where noise only adds; the least of all might be a lucky one."""
    ordered = sorted(samples)
    return ordered[(len(ordered) - 1) // 4]


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(fmean(math.log(value) for value in values))


def decide(ratio: Interval, at_least: float) -> Literal["passed", "failed", "doubt"]:
    """A gate passes on the lower bound and fails on the upper; between the two there is doubt."""
    if ratio.low >= at_least:
        return "passed"
    return "failed" if ratio.high < at_least else "doubt"


# From samples to timings, from timings to gates, from gates to points.

_BEYOND = 1.04  # times a gate, or that part of it: beyond that lie all of a few trials that settle it
_CEILING = 1.25  # times the bandwidth of a copy, or the peak of a matrix product: honest kernels reach 1.05

Seconds = Mapping[str, Mapping[str, Sequence[float]]]  # case -> peer -> seconds a launch, one entry a trial


def timings(
    exercise: Exercise,
    cases: Sequence[Case],
    seconds: Seconds,
    machine: Machine,
    launches: Mapping[str, int],
    events: Mapping[tuple[str, str], bool],
) -> tuple[Timing, ...]:
    """Every peer of every case, with bandwidth and its share of what was measured to be possible.

    `events` says by case and peer whether the times are the worker's events, which the arbiter's clock confirmed.
    """
    found = []
    for case in cases:
        for peer, samples in seconds.get(case.name, {}).items():
            time = interval(samples)
            gbps = exercise.bytes_moved(case) / time.middle / 1e9
            found.append(
                Timing(
                    case=case.name,
                    peer=peer,
                    median_us=time.middle * 1e6,
                    low_us=time.low * 1e6,
                    high_us=time.high * 1e6,
                    bandwidth_gbps=gbps,
                    share_of_roofline=_share(exercise, case, gbps, machine),
                    trials=len(samples),
                    launches_per_trial=launches[case.name],
                    clock="events" if events[case.name, peer] else "arbiter",
                )
            )
    return tuple(found)


def _share(exercise: Exercise, case: Case, gbps: float, machine: Machine) -> float | None:
    if not exercise.ceiling:
        return None
    return exercise.rate(case, gbps) / (machine.copy_gbps if exercise.limited_by == "memory" else machine.peak_tflops)


def gate_ratio(gate: Gate, seconds: Seconds) -> Interval:
    """Baseline over submission: in each trial the geometric mean over the gate's cases, then the interval of trials."""
    return interval(_by_trial(gate, seconds))


def _by_trial(gate: Gate, seconds: Seconds) -> list[float]:
    per_case = [
        [base / own for base, own in zip(seconds[name][gate.baseline], seconds[name]["submission"], strict=True)]
        for name in gate.cases
    ]
    # A case in which the two clocks disagree has more trials than the others.
    return [geometric_mean(trial) for trial in zip(*per_case, strict=False)]


def ceiling_s(exercise: Exercise, case: Case, machine: Machine) -> float:
    """Seconds at the ceilings that were measured: bytes over the bandwidth, or operations over the peak."""
    memory_s = exercise.bytes_moved(case) / (machine.copy_gbps * 1e9)
    compute_s = exercise.operations(case) / (machine.peak_tflops * 1e12)
    return max(memory_s, compute_s)


def floor_s(exercise: Exercise, case: Case, machine: Machine) -> float:
    """Seconds below which no time is believed."""
    return ceiling_s(exercise, case, machine) / _CEILING


def near(exercise: Exercise, seconds: Seconds) -> bool:
    """Whether a gate is within 4 % of a trial, or lies between two of them: then a few trials do not settle it."""
    return any(
        min(trials) < _BEYOND * gate.at_least and max(trials) > gate.at_least / _BEYOND
        for gate in exercise.gates
        for trials in [_by_trial(gate, seconds)]
    )


def inconclusive(exercise: Exercise, seconds: Seconds) -> bool:
    """Whether more trials could settle a gate."""
    return any(decide(gate_ratio(gate, seconds), gate.at_least) == "doubt" for gate in exercise.gates)


def judge_gates(exercise: Exercise, seconds: Seconds) -> tuple[GateResult, ...]:
    """Every gate with its ratio; where doubt is left, the submission has its benefit."""
    results = []
    for gate in exercise.gates:
        ratio = gate_ratio(gate, seconds)
        outcome = decide(ratio, gate.at_least)
        results.append(
            GateResult(
                baseline=gate.baseline,
                label=exercise.baseline(gate.baseline).label,
                at_least=gate.at_least,
                outcome=outcome,
                points=0.0 if outcome == "failed" else gate.points,
                max_points=gate.points,
                ratio=ratio.middle,
                low=ratio.low,
                high=ratio.high,
            )
        )
    return tuple(results)


def unjudged_gates(exercise: Exercise, needs_gpu: bool) -> tuple[GateResult, ...]:
    """The gates of a submission that was not timed."""
    return tuple(
        GateResult(
            baseline=gate.baseline,
            label=exercise.baseline(gate.baseline).label,
            at_least=gate.at_least,
            outcome="needs_gpu" if needs_gpu else "not_reached",
            points=0.0,
            max_points=gate.points,
        )
        for gate in exercise.gates
    )
