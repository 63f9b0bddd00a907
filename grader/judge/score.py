"""From samples to timings, from timings to gates, from gates to points."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median, stdev
from typing import Literal

from grader.exercise import Case, Exercise, Gate
from grader.judge.gpu.ceilings import Machine
from grader.verdict import GateResult, Timing

# Medians with distribution-free 95 % intervals: a submission cannot widen one by making its slow rounds even slower.

_STUDENT = {3: 4.303, 4: 3.182, 5: 2.776}  # 97.5 % quantile of Student's t with n − 1 degrees of freedom, by n
_NEAR_GATE = 1.04  # a few trials settle a gate if all their ratios are above or below it by this factor
_CEILING = 1.25  # times the measured ceiling (copy bandwidth or matrix-product peak): honest kernels reach 1.05

Seconds = Mapping[str, Mapping[str, Sequence[float]]]  # case -> peer -> seconds per launch, one entry per trial
Limits = Mapping[str, float]  # case -> the roofline's seconds per launch


@dataclass(frozen=True)
class Interval:
    """A median and its 95 % interval."""

    middle: float
    low: float
    high: float


def interval(samples: Sequence[float]) -> Interval:
    """Return the median and its 95 % interval by order statistics; of two samples, their range.

    The number of samples below the true median is binomial. Either side leaves out the ranks of at most 2.5 %.
    With three to five samples the full range covers less than 95 %. It is then widened to Student's t interval of the
    mean, but not below 0 unless a sample is.
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
    """Return the lower quartile, for times to which noise only adds. The minimum could be a fluke."""
    ordered = sorted(samples)
    return ordered[(len(ordered) - 1) // 4]


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(fmean(math.log(value) for value in values))


def decide(ratio: Interval, at_least: float) -> Literal["passed", "failed", "doubt"]:
    """Pass a gate by the interval's lower bound, fail it by the upper; "doubt" is in between."""
    if ratio.low >= at_least:
        return "passed"
    return "failed" if ratio.high < at_least else "doubt"


def timings(
    exercise: Exercise, cases: Sequence[Case], seconds: Seconds, machine: Machine, launches: Mapping[str, int],
    events: Mapping[tuple[str, str], bool],
) -> tuple[Timing, ...]:  # fmt: skip
    """Return the timing of every peer in every case, with its bandwidth and share of the roofline.

    `events` says by case and peer whether the times are the worker's CUDA events, confirmed by the arbiter's clock.
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
    """Return the interval, over trials, of the ratio baseline / submission (geometric mean over the gate's cases)."""
    return interval(_ratios(gate, seconds))


def margin(gate: Gate, seconds: Seconds, limits: Limits) -> Interval:
    """Return the interval, over trials, of how far a submission is above its gate: at 1 it passes.

    That is the ratio over the one required, or the share of the roofline over the one required if that is larger.
    """
    return interval(_margins(gate, seconds, limits))


def _margins(gate: Gate, seconds: Seconds, limits: Limits) -> list[float]:
    above = [ratio / gate.at_least for ratio in _ratios(gate, seconds)]
    if gate.or_share is None:
        return above
    return [max(one, share / gate.or_share) for one, share in zip(above, _shares(gate, seconds, limits), strict=True)]


def _ratios(gate: Gate, seconds: Seconds) -> list[float]:
    return _by_trial(gate, seconds, {name: seconds[name][gate.baseline] for name in gate.cases})


def _shares(gate: Gate, seconds: Seconds, limits: Limits) -> list[float]:
    roofline = {name: [limits[name]] * len(seconds[name]["submission"]) for name in gate.cases}
    return _by_trial(gate, seconds, roofline)


def _by_trial(gate: Gate, seconds: Seconds, peer: Mapping[str, Sequence[float]]) -> list[float]:
    per_case = [
        [other / own for other, own in zip(peer[name], seconds[name]["submission"], strict=True)] for name in gate.cases
    ]
    # A case in which the two clocks disagree has more trials than the others.
    return [geometric_mean(trial) for trial in zip(*per_case, strict=False)]


def limits(exercise: Exercise, scales: Mapping[str, int], machine: Machine) -> Limits:
    """Return the roofline's seconds per launch of each timed case, at the size at which it was timed."""
    if all(gate.or_share is None for gate in exercise.gates):
        return {}
    cases = [case for case in exercise.timed_cases if case.name in scales]
    return {case.name: ceiling_s(exercise, case.times(scales[case.name]), machine) for case in cases}


def ceiling_s(exercise: Exercise, case: Case, machine: Machine) -> float:
    """Return the roofline's time for a case: the larger of bytes / bandwidth and operations / peak."""
    memory_s = exercise.bytes_moved(case) / (machine.copy_gbps * 1e9)
    compute_s = exercise.operations(case) / (machine.peak_tflops * 1e12)
    return max(memory_s, compute_s)


def floor_s(exercise: Exercise, case: Case, machine: Machine) -> float:
    """Return the time below which a measurement is implausible."""
    return ceiling_s(exercise, case, machine) / _CEILING


def near(exercise: Exercise, seconds: Seconds, limits: Limits) -> bool:
    """Whether a gate is within 4 % of a trial or between two trials, so that a few trials do not settle it."""
    return any(
        min(trials) < _NEAR_GATE and max(trials) > 1 / _NEAR_GATE
        for gate in exercise.gates
        for trials in [_margins(gate, seconds, limits)]
    )


def inconclusive(exercise: Exercise, seconds: Seconds, limits: Limits) -> bool:
    """Whether a gate is in doubt, so that more trials could settle it."""
    return any(decide(margin(gate, seconds, limits), 1.0) == "doubt" for gate in exercise.gates)


def judge_gates(exercise: Exercise, seconds: Seconds, limits: Limits) -> tuple[GateResult, ...]:
    """Return every gate with its ratio and share. A gate in doubt counts as passed."""
    results = []
    for gate, blank in zip(exercise.gates, unjudged_gates(exercise, needs_gpu=False), strict=True):
        ratio = gate_ratio(gate, seconds)
        share = None if gate.or_share is None else median(_shares(gate, seconds, limits))
        outcome = decide(margin(gate, seconds, limits), 1.0)
        points = 0.0 if outcome == "failed" else gate.points
        judged = replace(blank, outcome=outcome, points=points, share=share)
        results.append(replace(judged, ratio=ratio.middle, low=ratio.low, high=ratio.high))
    return tuple(results)


def lacks(exercise: Exercise, gates: Sequence[GateResult], machine: Machine) -> tuple[str, ...]:
    """Return what this GPU lacks for a gate that was missed."""
    if machine.capability == 0 or all(gate.outcome != "failed" for gate in gates):
        return ()
    return tuple(sentence for below, sentence in exercise.lacking if machine.capability < below)


def unjudged_gates(exercise: Exercise, needs_gpu: bool) -> tuple[GateResult, ...]:
    """Return the gates of a submission that was not timed."""
    return tuple(
        GateResult(
            baseline=gate.baseline,
            label=exercise.baseline(gate.baseline).label,
            at_least=gate.at_least,
            outcome="needs_gpu" if needs_gpu else "not_reached",
            points=0.0,
            max_points=gate.points,
            or_share=gate.or_share,
        )
        for gate in exercise.gates
    )
