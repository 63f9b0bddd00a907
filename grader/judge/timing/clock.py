"""The arbiter's clock: what a round costs beyond its launches.

A round's wall time is the copying-in of the inputs, a small copy, the GPU's switch to the worker and the launches, and
the look at the outputs. All but the launches is calibrated with a worker that runs nobody's submission, whose CUDA
events can be believed. The launches are queued when the clock starts, but where the host's part is timed, too.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median_low

from grader.exercise import Array, Case, Exercise
from grader.judge import score
from grader.judge.checking.buffers import Desk, Spread
from grader.judge.gpu.ceilings import Machine
from grader.judge.process.worker import Round, Worker
from grader.judge.score import quartile
from grader.judge.timing.clock_choice import Reading
from grader.judge.timing.host_speed import Pace

_ROUND_S = 5e-3  # of launches in a round: against it the 8 µs that the switch is off in good rounds are below 0.2 %
_JITTER_S = 45e-6  # the host's part varies by some 40 µs (`clock/noise`)
_STRAINED_JITTERS = 2  # and by so many of these while its processor is slow
_L2_TURNS = 40  # the bytes of a round are so many times the L2: what a cache could hold of them is below 1 to 3 %
_MOST_LAUNCHES = 512
_CALIBRATION_LAUNCH_S = 35e-6
_CALIBRATION_LAUNCHES = (1, 4, 16, 64, 256, 1024)
_HOST_LAUNCHES = 16  # of these, where the calls are made after the flag was raised
_CALIBRATION_ROUNDS = 12
_DISTINCT = 16  # launches of a calibration round with buffers of their own


@dataclass(frozen=True)
class Curve:
    """Measured points, straight lines between them and on beyond the last; level before the first."""

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
    """What rounds took longer than calibrated, in seconds: between the inputs' arrival and the look, and the look."""

    switch_s: float = 0.0
    look_s: float = 0.0
    strained: bool = False  # whether the processor was slow meanwhile

    @property
    def longer(self) -> Excess:
        """The same without what was shorter: that a clock runs short is to be seen in rounds of ours."""
        return Excess(max(0.0, self.switch_s), max(0.0, self.look_s), self.strained)


NO_DRIFT = Excess()


@dataclass(frozen=True)
class Clock:
    """What a round costs beyond its launches, in seconds.

    `switch_s`: the small copy and the GPU's switch to the worker, by the seconds that the launches take. `host_s`: the
    host's way to the first launch, where that is not queued ahead. `copy_in_s`: by the bytes copied in. `glimpse_s`: by
    the copies of the look.

    Some excess over what is calibrated is noise. Of the copying-in it is up to `copy_in_jitter_s`; more counts in full,
    because work of another process meanwhile costs two switches. Of the look it is up to `jitter_s`, and what exceeds
    that counts. What the workers of ours show beside a submission is taken off before: see `drift`.
    """

    switch_s: Curve
    copy_in_s: Curve
    glimpse_s: Curve
    jitter_s: float
    copy_in_jitter_s: float
    host_s: float = 0.0
    pace: Pace = field(default_factory=Pace)

    @classmethod
    def calibrate(cls, desk: Desk, machine: Machine, worker: Worker) -> Clock:
        """Rounds of one to a thousand short copies, by a worker that runs nobody's submission.

        An empty round would not do: the GPU's switch from one process to the other costs less when the other has
        little to run, and more the longer it runs. What the host does before takes tens of microseconds more in
        some rounds, and noise only adds: the lower quartile counts.
        """
        elements = max(1 << 16, int(machine.copy_gbps * 1e9 * _CALIBRATION_LAUNCH_S / 8) & ~511)
        case = Case("calibration", (Array("x", (elements,)), Array("out", (elements,), role="out")))
        most = min(_DISTINCT, desk.capacity(case))
        switches: list[tuple[float, float]] = []
        glimpses: dict[float, float] = {}
        pace = Pace()
        for launches in _CALIBRATION_LAUNCHES:
            spread = desk.lay(case, min(launches, most))
            rows = len(spread.launches)
            spread = spread.repeated(launches // rows)
            desk.deal(spread)
            worker.plan(spread)
            found = cls._rounds(desk, spread, worker, pace, head_start=True)
            switches.append(_beyond(found))
            glimpses.setdefault(float(found[-1].look.copies), quartile(one.glimpse_s for one in found))
            if launches == _HOST_LAUNCHES:
                by_host_s = _beyond(cls._rounds(desk, spread, worker, pace, head_start=False))[1] - switches[-1][1]
        copies = [(float(size), desk.copy_in_s(size)) for size in _sizes(desk.arenas["inputs"].size)]
        least_s = min(cost for _, cost in switches)
        return cls(
            switch_s=Curve.through(switches),
            copy_in_s=Curve.through(copies),
            glimpse_s=Curve.through(list(glimpses.items())),
            jitter_s=min(_JITTER_S, least_s / 3),
            copy_in_jitter_s=0.55 * least_s,
            host_s=max(0.0, by_host_s),
            pace=pace,
        )

    @staticmethod
    def _rounds(desk: Desk, spread: Spread, worker: Worker, pace: Pace, head_start: bool) -> list[Round]:
        """Rounds of a calibration, without the first two and any whose events say nothing."""
        rounds = []
        for _ in range(_CALIBRATION_ROUNDS):
            desk.poison(spread)
            pace.is_strained()  # which shows it how fast the processor can be
            rounds.append(worker.round("", desk, 30.0, head_start))
        return [one for one in rounds[2:] if one.event_s is not None]

    @property
    def of_the_host(self) -> Clock:
        """For rounds in which nobody has a head start: the host's way to the first launch is taken off, too."""
        costs = tuple(cost + self.host_s for cost in self.switch_s.values)
        return replace(self, switch_s=Curve(self.switch_s.at, costs), host_s=0.0)

    def excess(self, trusted: Sequence[Round], strained: bool) -> Excess:
        """What the rounds of workers of ours took longer than calibrated: the least of them, in a trial.

        Those that do not `tell` are left out.
        """
        switches, looks = [], []
        for one in filter(self.tells, trusted):
            switches.append(self.switch_excess_s(one))
            looks.append(self.glimpse_excess_s(one))
        return Excess(min(switches, default=0.0), min(looks, default=0.0), strained)

    def tells(self, one: Round) -> bool:
        """Whether it is no longer than those of the calibration: else what its switch should cost is not known, and the
        look after it finds the host's caches cold.
        """
        return one.event_s is not None and one.event_s <= self.switch_s.at[-1]

    def drift(self, trials: Sequence[Excess]) -> Excess:
        """How much longer than calibrated a round takes just now, by the last trials: the middle one, of two the lower
        one. So one slow round of a baseline makes no submission faster.

        The host has spells in which a round takes some 100 µs more; the processor is slow in most of the trials then.
        Otherwise a jitter is believed of the switch, and nothing of the look: who keeps the GPU busy beside us can have
        both take longer.
        """
        switch_s, look_s = median_low(one.switch_s for one in trials), median_low(one.look_s for one in trials)
        if strained := 2 * sum(one.strained for one in trials) > len(trials):
            most_s = _STRAINED_JITTERS * self.jitter_s
            return Excess(min(switch_s, most_s), min(look_s, most_s), strained)
        return Excess(min(switch_s, self.jitter_s), min(look_s, 0.0), strained)

    def takes_too_much(self, trials: Sequence[Excess]) -> bool:
        """Whether rounds are shorter than calibrated by more than the jitter: it was calibrated in a slow spell."""
        return bool(trials) and median_low(one.switch_s for one in trials) < -self.jitter_s

    def read(self, spread: Spread, one: Round, drift: Excess = NO_DRIFT, trusted: bool = False) -> Reading:
        """What a launch of this round took, by both clocks."""
        work_s = one.work_s - drift.switch_s
        if (more_s := one.copy_in_s - self.copy_in_s(spread.used["inputs"])) > self.copy_in_jitter_s:
            work_s += more_s
        work_s += max(0.0, self.glimpse_excess_s(one) - drift.look_s - self.jitter_s)
        launches_s = work_s
        for _ in range(3):  # the switch depends a little on the launches' time, which is not known yet
            launches_s = max(work_s - self.switch_s(launches_s), 1e-9)
        count = len(spread.launches)
        events_s = None if one.event_s is None else one.event_s / count
        return Reading(launches_s / count, events_s, trusted, self.jitter_s / count)

    def switch_excess_s(self, one: Round) -> float:
        """What it took longer than calibrated to the launches, by what the worker's events say of these."""
        assert one.event_s is not None
        return one.work_s - one.event_s - self.switch_s(one.event_s)

    def glimpse_excess_s(self, one: Round) -> float:
        """What the look took longer than calibrated for so many copies."""
        return one.glimpse_s - self.glimpse_s(one.look.copies)


def _beyond(rounds: Sequence[Round]) -> tuple[float, float]:
    """Seconds of the launches by events, and of what comes besides."""
    return quartile(one.event_s or 0.0 for one in rounds), quartile(one.work_s - (one.event_s or 0.0) for one in rounds)


def _sizes(largest: int) -> list[int]:
    """Bytes, each four times the one before, up to the arena."""
    sizes = [1 << 12]
    while sizes[-1] * 4 < largest:
        sizes.append(sizes[-1] * 4)
    return [*sizes, largest]


def launches_for(desk: Desk, machine: Machine, exercise: Exercise, case: Case) -> int:
    """How many launches make a round: long enough for the clock, more memory than the L2 holds, within the arenas."""
    if exercise.launches is not None:
        return max(1, min(exercise.launches, desk.capacity(case)))
    least_s, moved = score.ceiling_s(exercise, case, machine), exercise.bytes_moved(case)
    wanted = max(_ROUND_S / least_s, _L2_TURNS * machine.l2_bytes / moved, 2)
    return max(1, min(int(wanted) + 1, _MOST_LAUNCHES, desk.capacity(case)))
