"""The arbiter's clock, calibrated to subtract a round's overhead from its wall time.

A round copies in the inputs, makes a small copy, switches the GPU to the worker, runs the launches, and probes the
outputs. A trusted worker, whose CUDA events are reliable, calibrates all parts but the launches.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median_low

from grader.exercise import Array, Case, Exercise
from grader.judge import score
from grader.judge.checking.buffers import Buffers, Layout
from grader.judge.gpu.ceilings import HostSpeed, Machine
from grader.judge.process.worker import Round, Worker
from grader.judge.score import quartile
from grader.judge.timing.clock_choice import Reading

_ROUND_S = 5e-3  # launches per round: the switch's usual error of 8 µs is less than 0.2 % of it
_JITTER_S = 45e-6  # the host's part varies by some 40 µs (`clock/noise`)
_STRAINED_JITTERS = 2  # and by so many jitters while its processor is slow
_L2_TURNS = 40  # a round moves so many times the L2's size: a cache holds at most 1 to 3 % of it
_MOST_LAUNCHES = 512
_CALIBRATION_LAUNCH_S = 35e-6
_CALIBRATION_LAUNCHES = (1, 4, 16, 64, 256, 1024)
_HOST_LAUNCHES = 16  # launches when calibrating rounds without a head start
_CALIBRATION_ROUNDS = 12
_DISTINCT = 16  # launches with separate buffers in a calibration round


@dataclass(frozen=True)
class Curve:
    """Interpolates measured points linearly, and extrapolates beyond the last; constant before the first."""

    at: tuple[float, ...]
    values: tuple[float, ...]

    @classmethod
    def through(cls, points: Sequence[tuple[float, float]]) -> Curve:
        return cls(tuple(at for at, _ in sorted(points)), tuple(value for _, value in sorted(points)))

    def __call__(self, at: float) -> float:
        right = bisect.bisect_left(self.at, at)
        if right == 0 or len(self.at) == 1:
            return self.values[0]
        right = min(right, len(self.at) - 1)
        share = (at - self.at[right - 1]) / (self.at[right] - self.at[right - 1])
        return self.values[right - 1] + share * (self.values[right] - self.values[right - 1])


@dataclass(frozen=True)
class Excess:
    """Seconds over the calibration: from the inputs' arrival to the probe, and of the probe."""

    switch_s: float = 0.0
    probe_s: float = 0.0
    strained: bool = False  # whether the processor was slow

    @property
    def longer(self) -> Excess:
        """The same without negative parts, so that a clock that runs short shows in trusted rounds."""
        return Excess(max(0.0, self.switch_s), max(0.0, self.probe_s), self.strained)


NO_DRIFT = Excess()


@dataclass(frozen=True)
class Clock:
    """The overhead of a round in seconds.

    `switch_s`: the small copy and the GPU's switch to the worker, by the launches' seconds. `host_s`: the host's time
    to the first launch without a head start. `copy_in_s`: by bytes. `probe_s`: the probe, by its number of copies.

    A small excess is noise. An excess of the copy-in above `copy_in_jitter_s` counts in full, because another process's
    work costs two switches; of the probe, only the part above `jitter_s` counts. `drift` is subtracted first.
    """

    switch_s: Curve
    copy_in_s: Curve
    probe_s: Curve
    jitter_s: float
    copy_in_jitter_s: float
    host_s: float = 0.0
    host_speed: HostSpeed = field(default_factory=HostSpeed)

    @classmethod
    def calibrate(cls, buffers: Buffers, machine: Machine, worker: Worker) -> Clock:
        """Calibrate with rounds of 1 to 1024 short copies in a trusted worker.

        The GPU's switch takes longer the longer the worker's launches run, so empty rounds do not calibrate it.
        Noise of the host only adds time, so the lower quartile counts.
        """
        elements = max(1 << 16, int(machine.copy_gbps * 1e9 * _CALIBRATION_LAUNCH_S / 8) & ~511)
        case = Case("calibration", (Array("x", (elements,)), Array("out", (elements,), role="out")))
        most = min(_DISTINCT, buffers.capacity(case))
        switches: list[tuple[float, float]] = []
        probes: dict[float, float] = {}
        host_speed = HostSpeed()
        for launches in _CALIBRATION_LAUNCHES:
            layout = buffers.lay(case, min(launches, most))
            layout = layout.repeated(launches // len(layout.launches))
            buffers.fill(layout)
            worker.plan(layout)
            found = cls._rounds(buffers, layout, worker, host_speed, head_start=True)
            switches.append(_beyond(found))
            probes.setdefault(float(found[-1].probe.copies), quartile(one.probe_s for one in found))
            if launches == _HOST_LAUNCHES:
                late = cls._rounds(buffers, layout, worker, host_speed, head_start=False)
                by_host_s = _beyond(late)[1] - switches[-1][1]
        copies = [(float(size), buffers.copy_in_s(size)) for size in _sizes(buffers.arenas["inputs"].size)]
        least_s = min(cost for _, cost in switches)
        return cls(
            switch_s=Curve.through(switches),
            copy_in_s=Curve.through(copies),
            probe_s=Curve.through(list(probes.items())),
            jitter_s=_JITTER_S if buffers.staged else min(_JITTER_S, least_s / 3),  # its switch is only a few µs
            copy_in_jitter_s=0.55 * least_s,
            host_s=max(0.0, by_host_s),
            host_speed=host_speed,
        )

    @staticmethod
    def _rounds(
        buffers: Buffers, layout: Layout, worker: Worker, host_speed: HostSpeed, head_start: bool
    ) -> list[Round]:
        """Return a calibration's rounds without the first two and any without valid events."""
        rounds = []
        for _ in range(_CALIBRATION_ROUNDS):
            buffers.poison(layout)
            host_speed.is_strained()  # records how fast the processor can be
            rounds.append(worker.round("", buffers, 30.0, head_start))
        return [one for one in rounds[2:] if one.event_s is not None]

    @property
    def of_the_host(self) -> Clock:
        """The clock for rounds without a head start, which also subtracts `host_s`."""
        costs = tuple(cost + self.host_s for cost in self.switch_s.values)
        return replace(self, switch_s=Curve(self.switch_s.at, costs), host_s=0.0)

    def excess(self, trusted: Sequence[Round], strained: bool) -> Excess:
        """Return the least excess of a trial's trusted rounds, without the rounds that do not `tell`."""
        telling = [*filter(self.tells, trusted)]
        switch_s = min(map(self.switch_excess_s, telling), default=0.0)
        return Excess(switch_s, min(map(self.probe_excess_s, telling), default=0.0), strained)

    def tells(self, one: Round) -> bool:
        """Whether the round is within the calibrated range; a longer one also leaves the host's caches cold."""
        return one.event_s is not None and one.event_s <= self.switch_s.at[-1]

    def drift(self, trials: Sequence[Excess]) -> Excess:
        """Return the current excess: the (lower) median of the last trials, so that one slow round changes nothing.

        For some seconds a host can add 100 µs to every round; then the processor is slow in most trials. Otherwise
        subtract at most one jitter from the switch and nothing from the probe: a submission's GPU work lengthens both.
        """
        switch_s, probe_s = median_low(one.switch_s for one in trials), median_low(one.probe_s for one in trials)
        if strained := 2 * sum(one.strained for one in trials) > len(trials):
            most_s = _STRAINED_JITTERS * self.jitter_s
            return Excess(min(switch_s, most_s), min(probe_s, most_s), strained)
        return Excess(min(switch_s, self.jitter_s), min(probe_s, 0.0), strained)

    def takes_too_much(self, trials: Sequence[Excess]) -> bool:
        """Whether rounds are shorter than calibrated by more than the jitter: the calibration was too slow."""
        return bool(trials) and median_low(one.switch_s for one in trials) < -self.jitter_s

    def read(self, layout: Layout, one: Round, drift: Excess = NO_DRIFT, trusted: bool = False) -> Reading:
        """Return the seconds per launch of a round by both clocks."""
        work_s = one.work_s - drift.switch_s
        if (more_s := one.copy_in_s - self.copy_in_s(layout.used["inputs"])) > self.copy_in_jitter_s:
            work_s += more_s
        work_s += max(0.0, self.probe_excess_s(one) - drift.probe_s - self.jitter_s)
        launches_s = work_s
        for _ in range(3):  # a fixed point: the switch depends a little on the launches' time
            launches_s = max(work_s - self.switch_s(launches_s), 1e-9)
        count = len(layout.launches)
        events_s = None if one.event_s is None else one.event_s / count
        return Reading(launches_s / count, events_s, trusted, self.jitter_s / count)

    def switch_excess_s(self, one: Round) -> float:
        """Return the switch's excess, given the launches' time by the worker's events."""
        assert one.event_s is not None
        return one.work_s - one.event_s - self.switch_s(one.event_s)

    def probe_excess_s(self, one: Round) -> float:
        """Return the probe's excess."""
        return one.probe_s - self.probe_s(one.probe.copies)


def _beyond(rounds: Sequence[Round]) -> tuple[float, float]:
    """Return the quartiles of the launches' seconds by events and of the remaining seconds."""
    return quartile(one.event_s or 0.0 for one in rounds), quartile(one.work_s - (one.event_s or 0.0) for one in rounds)


def _sizes(largest: int) -> list[int]:
    sizes = [1 << 12]
    while sizes[-1] * 4 < largest:
        sizes.append(sizes[-1] * 4)
    return [*sizes, largest]


def launches_for(buffers: Buffers, machine: Machine, exercise: Exercise, case: Case) -> int:
    """Return the launches per round: long enough for the clock, beyond the L2, within the arenas."""
    if exercise.launches is not None:
        return max(1, min(exercise.launches, buffers.capacity(case)))
    least_s, moved = score.ceiling_s(exercise, case, machine), exercise.bytes_moved(case)
    wanted = max(_ROUND_S / least_s, _L2_TURNS * machine.l2_bytes / moved, 2)
    return max(1, min(int(wanted) + 1, _MOST_LAUNCHES, buffers.capacity(case)))
