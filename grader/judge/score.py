"""From samples to timings, from timings to gates, from gates to points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grader.exercise import Case, Exercise, Gate
from grader.judge.machine import Machine
from grader.judge.statistics import Interval, decide, geometric_mean, interval
from grader.verdict import GateResult, Timing

__all__ = [
    "Seconds", "ceiling_s", "floor_s", "gate_ratio", "inconclusive", "judge_gates", "near", "timings",
    "unjudged_gates",
]  # fmt: skip

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
