"""The timing of one submission: trials in turn with the baselines, until the gates are settled, and nobody disturbed.

A baseline's round is believed where it is as fast as when no submission was alive. Where it is not, the baselines are
timed again after the submission's end, and that time counts for the round: slowing a baseline gains nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median

from grader.errors import JudgeStopped
from grader.exercise import Baseline, Case, Exercise
from grader.judge import score
from grader.judge.bench import Bench
from grader.judge.gpu.nvml import Record
from grader.judge.process.worker import Worker, WorkerFailed
from grader.judge.timing.clock import Excess, launches_for
from grader.judge.timing.clock_choice import (
    AGREEMENT,
    OWN,
    Reading,
    baseline_rounds,
    claims_less,
    counted,
    disputed,
    enough,
    held_up,
    not_alone,
    seconds_of,
    slow_rounds,
    sure,
)
from grader.judge.timing.trial import BaselineFailed, HeldUp, sample, undisturbed
from grader.verdict import Failure, Finding, GateResult, Timing

_FIRST_TRIALS, _TRIALS, _MOST_TRIALS = 3, 7, 28
_WARM_UP_LIMIT_S = 120.0  # a first round may compile: Triton, or torch.compile on a slow machine
_FEW = 1 / 8  # of the rounds: so many outliers are no reason to time the baselines anew
_WIDE = 0.03  # of a ratio's middle: a wider interval, with others at work, is timed again without them


class Timer:
    """Takes the times of one submission and of the baselines beside it."""

    def __init__(self, bench: Bench, exercise: Exercise, progress: Callable[[str, int, int], None]) -> None:
        self.bench, self.exercise, self.progress = bench, exercise, progress
        self.readings: dict[str, dict[str, list[Reading]]] = {}  # by case, then by peer
        self.launches: dict[str, int] = {}
        self.scales: dict[str, int] = {}
        self.late: set[str] = set()  # cases in which its own calls are made after the clock has started
        self.one_queue = False  # whether its next worker's streams are to share one queue to the GPU
        self.gated = True  # a plot shows the sizes that it names; for gates they grow with the GPU
        self.record: Record | None = None
        self.taken_too_much = False  # by the clock, off rounds of ours
        self.disputed = False  # whether the clock may run long, and a gate hangs on it
        needed = {gate.baseline for gate in exercise.gates}
        self._gated = tuple(baseline for baseline in exercise.baselines if baseline.id in needed)

    @property
    def seconds(self) -> dict[str, dict[str, list[float]]]:
        """Seconds a launch, one entry a trial, by case and peer."""
        return seconds_of(self.readings)

    def forget(self) -> None:
        """Begins anew."""
        self.readings, self.launches, self.record, self.late = {}, {}, None, set()
        self.taken_too_much = self.disputed = False

    def know_baselines(self) -> None:
        """Calibrates the clock and times the gates' baselines while no submission is alive, unless that is known."""
        known = self.bench.alone
        cases = self.exercise.timed_cases
        for case in cases:
            if self.bench.sizes.outgrown(self.exercise, case, self.bench.machine, self.bench.desk):
                for baseline in self._gated:
                    known.pop((self.exercise.id, baseline.id, case.name), None)
        if any((self.exercise.id, b.id, case.name) not in known for b in self._gated for case in cases):
            self._alone(self._gated)
        elif not self.bench.calibrated:
            self.time((), (), 0)  # no case: it starts the baselines' worker and calibrates the clock

    def time_gates(self, worker: Worker) -> None:
        """Trials until the gates are settled; once more, without the others, where these may have disturbed it.

        Raises:
            WorkerFailed: the submission failed.
            TimedWrong: one of its outputs is wrong.
            HeldUp: it is to be timed in a worker of one queue, and has not been.
            JudgeStopped: a baseline failed twice, which is no fault of the submission.
        """
        self.bench.desk.settle()  # what the cases' oracles are still at is not part of the record
        with self.bench.monitor.watch() as self.record:
            self._settle_gates(worker)
            if self.bench.pool.busy and self._wide() and not self._sure():
                self.time(self.exercise.timed_cases, self._gated, _TRIALS, worker)
            if self.bench.pool.busy and (self.late or self._wide() or self._mostly_slow()) and not self._sure():
                self.bench.pool.evict()
                self.readings.clear()
                self.late.clear()  # others may have held it up
                self._settle_gates(worker)

    def settle(self) -> list[Finding]:
        """After the submission's end: a baseline's round that was slower than the baseline alone counts as alone.

        Where many were, the GPU may be warmer than it was when the baselines were timed alone; that is done again then.
        It is not where no gate hangs on it: some baselines take more than 1 % longer from one time to the next.
        """
        again = len(self._slow_rounds()) > _FEW * baseline_rounds(self.readings) and not self._sure()
        if again:
            self._alone(self._gated)
        disturbed = again and self._mostly_slow()
        for case, peer, number in not_alone(self.readings, self._by_itself):
            alone = self._by_itself(case, peer)
            self.readings[case][peer][number] = Reading(alone, alone, trusted=True)
        self.disputed = not self.late and disputed(self.exercise, self.readings)
        if not disturbed:
            return claims_less(self.readings)
        return [Finding("disturbed", "While this was timed the baselines ran slower than they do alone; their times "
                        "alone count."), *claims_less(self.readings)]  # fmt: skip

    def time(
        self, cases: Sequence[Case], baselines: Sequence[Baseline], trials: int, worker: Worker | None = None
    ) -> None:
        """Adds `trials` readings of every peer to every case; the first round of a case warms up and is not counted.

        Raises: as `time_gates`.
        """
        try:
            self._time(cases, baselines, trials, worker)
        except BaselineFailed:
            self.bench.drop_baselines()
            self.readings.clear()
            try:
                self._time(cases, baselines, max(trials, _TRIALS), worker)
            except BaselineFailed as failed:
                self.bench.drop_baselines()
                name, why = failed.args
                if worker is not None:
                    worker.close()
                    self._alone(baselines)  # which raises where they do not run at all
                    raise WorkerFailed(Failure("limit", f"Beside it the baseline {name} cannot run: {why}")) from None
                raise JudgeStopped(f"The baseline {name} failed, so there is nothing to compare with: {why}") from None

    def gates(self, judged: bool) -> tuple[GateResult, ...]:
        """The gates by these times, or as not reached."""
        if judged and self.readings:
            return score.judge_gates(self.exercise, self.seconds)
        return score.unjudged_gates(self.exercise, needs_gpu=self.bench.device != "cuda")

    def timings(self, cases: Sequence[Case]) -> tuple[Timing, ...]:
        """What was measured, for a verdict or a plot."""
        events = {
            (case, peer): 2 * sum(one.clock == "events" for one in counted(found)) >= len(found)
            for case, peers in self.readings.items()
            for peer, found in peers.items()
        }
        measured = [case.times(self.scales[case.name]) for case in cases if case.name in self.readings]
        return tuple(
            replace(timing, scale=self.scales[timing.case])
            for timing in score.timings(
                self.exercise, measured, self.seconds, self.bench.machine, self.launches, events
            )
        )

    def clock(self) -> str:
        """Which clock counted for the submission, and why."""
        own = [one for peers in self.readings.values() for one in counted(peers.get(OWN, ()))]
        if self.bench.device != "cuda":
            return "none: a simulator has no speed"
        more = "; all its streams shared one queue" if self.one_queue else ""
        if not own:
            return f"none: nothing was timed{more}" if self.exercise.gates else "none: there are no points for speed"
        more += f"; in {', '.join(sorted(self.late))} its calls came after the clock had started" if self.late else ""
        events, share = sum(one.clock == "events" for one in own), f"{100 * AGREEMENT:g} %"
        if events == len(own):
            return f"CUDA events: the judge's own clock agrees within {share}, in {len(own)} rounds{more}"
        if not events:
            return f"the judge's own: CUDA events did not agree with it within {share}, in {len(own)} rounds{more}"
        return f"CUDA events in {events} of {len(own)} rounds, the judge's own where they were not within {share}{more}"

    def implausible(self) -> Failure | None:
        """A claim below the roofline's floor is refused: no kernel is faster than the hardware."""
        if self._below_the_floor() is not None:
            self.bench.look_at_the_machine_again()
        return self._below_the_floor()

    def _below_the_floor(self) -> Failure | None:
        for timing in self.timings(self.exercise.timed_cases):
            if timing.peer == OWN:
                case = next(case for case in self.exercise.timed_cases if case.name == timing.case).times(timing.scale)
                floor_us = 1e6 * score.floor_s(self.exercise, case, self.bench.machine)
                if timing.median_us < floor_us:
                    said = f"{timing.case} in {timing.median_us:.1f} µs is faster than this GPU allows"
                    return Failure("implausible", f"{said} ({floor_us:.1f} µs): not believed, and kept for a person.")
        return None

    def _settle_gates(self, worker: Worker) -> None:
        self.time(self.exercise.timed_cases, self._gated, _FIRST_TRIALS, worker)
        if not self._few_suffice() and self._more_trials():
            self.time(self.exercise.timed_cases, self._gated, _TRIALS - _FIRST_TRIALS, worker)
        while score.inconclusive(self.exercise, self.seconds) and self._more_trials():
            self.time(self.exercise.timed_cases, self._gated, _TRIALS, worker)

    def _few_suffice(self) -> bool:
        """Whether nobody disturbed the first trials, no gate is near, and none is in doubt."""
        near = score.near(self.exercise, self.seconds) or score.inconclusive(self.exercise, self.seconds)
        return not near and not self._slow_rounds()

    def _more_trials(self) -> bool:
        """A ratio has as many trials as the case with the fewest; one whose clocks disagree has more of them."""
        trials = [len(self.readings[case.name][OWN]) for case in self.exercise.timed_cases]
        return min(trials) < _MOST_TRIALS and max(trials) < 2 * _MOST_TRIALS

    def _alone(self, baselines: Sequence[Baseline]) -> None:
        """Times baselines with no submission alive."""
        self.bench.pool.evict()
        alone = Timer(self.bench, self.exercise, self.progress)
        alone.time(self.exercise.timed_cases, baselines, _TRIALS)
        if alone.taken_too_much:
            self.bench.forget_clock()
            alone.forget()
            alone.time(self.exercise.timed_cases, baselines, _TRIALS)
        for case, peers in alone.readings.items():
            for peer, readings in peers.items():
                self.bench.alone[self.exercise.id, peer, case] = readings

    def _by_itself(self, case: str, peer: str) -> float:
        return median(one.events_s or 0.0 for one in self.bench.alone[self.exercise.id, peer, case])

    def _slow_rounds(self) -> list[tuple[str, str, int]]:
        return slow_rounds(self.readings, self._by_itself)

    def _sure(self) -> bool:
        return sure(self.exercise, self.readings, self._by_itself)

    def _mostly_slow(self) -> bool:
        return 2 * len(self._slow_rounds()) > baseline_rounds(self.readings)

    def _wide(self) -> bool:
        ratios = [score.gate_ratio(gate, self.seconds) for gate in self.exercise.gates]
        return any(ratio.high - ratio.low > _WIDE * ratio.middle for ratio in ratios)

    def _time(self, cases: Sequence[Case], baselines: Sequence[Baseline], trials: int, worker: Worker | None) -> None:
        bench, exercise = self.bench, self.exercise
        self.progress("preparing the baselines", 0, len(cases))
        base = bench.baseline_worker(exercise, baselines)
        clock = bench.clock_for(base)
        bench.desk.warm(cases)
        peers = {} if worker is None else {OWN: worker}
        peers |= {f"{exercise.id}:{baseline.id}": base for baseline in baselines}
        for number, case in enumerate(cases):
            self.progress(f"timing {case.name}", number, len(cases))
            self.scales[case.name] = 1
            if self.gated:
                self.scales[case.name] = bench.sizes.scale(exercise, case, bench.machine, bench.desk)
            scaled = case.times(self.scales[case.name])
            spread = bench.desk.lay(scaled, launches_for(bench.desk, bench.machine, exercise, scaled))
            self.launches[case.name] = len(spread.launches)
            if worker is not None:
                worker.plan(spread)
            try:
                base.plan(spread)
            except WorkerFailed as failed:
                raise BaselineFailed("worker", failed.failure.message) from None
            kept = self.readings.setdefault(case.name, {})
            with bench.pool.still(), undisturbed():
                aside = bench.monitor.aside
                seen: list[Excess] = []
                desk, done = bench.desk, 0
                limit_s = bench.machine.slowness * exercise.round_limit_s
                early = exercise.head_start and case.name not in self.late
                sample(desk, spread, exercise, peers, clock, _WARM_UP_LIMIT_S, seen, aside, early, checked=False)
                while done < max(trials, _MOST_TRIALS):
                    found = sample(desk, spread, exercise, peers, clock, limit_s, seen, aside, early)
                    for peer, reading in found.items():
                        kept.setdefault(peer.split(":")[-1], []).append(reading)
                    done += 1
                    if early and worker is not None and held_up(kept[OWN]):
                        if not self.one_queue:
                            self.one_queue = True
                            raise HeldUp
                        self.late.add(case.name)
                        early, done = False, 0
                        kept.clear()
                        continue
                    if done >= trials and (worker is None or _settled(kept[OWN])):
                        break
            self.taken_too_much |= clock.takes_too_much(seen)


def _settled(own: Sequence[Reading]) -> bool:
    """Whether the clocks agree, or have had as many rounds for it as there are."""
    return enough(own) or len(own) >= _MOST_TRIALS
