"""The timing of one submission: trials alternate with the baselines until all gates are settled.

A baseline's round counts if it is as fast as the baseline alone, with no submission alive. Otherwise the time alone
counts, so that slowing a baseline gains nothing.
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
from grader.judge.timing import clock_choice
from grader.judge.timing.clock import Excess, launches_for
from grader.judge.timing.clock_choice import OWN, Reading, counted
from grader.judge.timing.trial import BaselineFailed, HeldUp, sample, undisturbed
from grader.verdict import PRACTICE_CLOCK, Failure, Finding, GateResult, Timing
from grader.words import plural

_FIRST_TRIALS, _TRIALS, _MOST_TRIALS = 3, 7, 28
_WARM_UP_LIMIT_S = 120.0  # the first round may compile: Triton, or torch.compile on a slow machine
_FEW = 1 / 8  # of the rounds may be outliers before the baselines are timed again
_WIDE = 0.03  # of a ratio: a wider interval, measured while others load, is timed again without them


class Timer:
    """Times one submission and the baselines that it is compared with."""

    def __init__(self, bench: Bench, exercise: Exercise, progress: Callable[[str, int, int], None]) -> None:
        self.bench, self.exercise, self.progress = bench, exercise, progress
        self.readings: dict[str, dict[str, list[Reading]]] = {}  # by case, then by peer
        self.launches: dict[str, int] = {}
        self.scales: dict[str, int] = {}
        self.late: set[str] = set()  # cases in which its calls come after the clock has started
        self.one_queue = False  # whether the streams of its next worker share one queue to the GPU
        self.gated = True  # gates scale the problem size with the GPU, plots do not
        self.record: Record | None = None
        self.taken_too_much = False  # whether the clock subtracted too much from trusted rounds
        self.disputed = False  # whether the clock may run long and a gate depends on it
        needed = {gate.baseline for gate in exercise.gates}
        self._gated = tuple(baseline for baseline in exercise.baselines if baseline.id in needed)

    @property
    def seconds(self) -> dict[str, dict[str, list[float]]]:
        """Seconds per launch by case and peer, one entry per trial."""
        return clock_choice.seconds_of(self.readings)

    def forget(self) -> None:
        """Drop all readings."""
        self.readings, self.launches, self.record, self.late = {}, {}, None, set()
        self.taken_too_much = self.disputed = False

    def know_baselines(self) -> None:
        """Calibrate the clock and time the gates' baselines alone, unless both are known."""
        known = self.bench.alone
        cases = self.exercise.timed_cases
        for case in cases:
            if self.bench.sizes.outgrown(self.exercise, case, self.bench.machine, self.bench.buffers):
                for baseline in self._gated:
                    known.pop((self.exercise.id, baseline.id, case.name), None)
        if any((self.exercise.id, b.id, case.name) not in known for b in self._gated for case in cases):
            self._alone(self._gated)
        elif not self.bench.calibrated:
            self.time((), (), 0)  # without cases this only starts the worker and calibrates the clock

    def time_gates(self, worker: Worker) -> None:
        """Run trials until the gates are settled; repeat without other submissions if these may have disturbed them.

        Raises:
            WorkerFailed: the submission failed.
            TimedWrong: one of its outputs is wrong.
            HeldUp: the submission needs a worker of one queue.
            JudgeStopped: a baseline failed twice, through no fault of the submission.
        """
        self.bench.buffers.settle()  # keeps the oracles' work out of the record
        with self.bench.monitor.watch() as self.record:
            self._settle_gates(worker)
            if self.bench.pool.busy and self._wide() and not self._sure():
                self.time(self.exercise.timed_cases, self._gated, _TRIALS, worker)
            if self.bench.pool.busy and (self.late or self._wide() or self._mostly_slow()) and not self._sure():
                self.bench.pool.evict()
                self.readings.clear()
                self.late.clear()  # others may have delayed it
                self._settle_gates(worker)

    def settle(self) -> list[Finding]:
        """After the submission's end, replace each baseline round that was slower than alone by the time alone.

        If many were slower, the GPU may be warmer now: time the baselines alone again, unless all gates are sure.
        """
        again = len(self._slow_rounds()) > _FEW * clock_choice.baseline_rounds(self.readings) and not self._sure()
        if again:
            self._alone(self._gated)
        disturbed = again and self._mostly_slow()
        claims = clock_choice.claims_less(self.readings)  # by the rounds as they were
        for case, peer, number in clock_choice.not_alone(self.readings, self._by_itself):
            alone = self._by_itself(case, peer)
            self.readings[case][peer][number] = Reading(alone, alone, trusted=True)
        self.disputed = not self.late and clock_choice.disputed(self.exercise, self.readings, self._limits)
        if not disturbed:
            return claims
        return [Finding("disturbed", "While this was timed the baselines ran slower than they do alone; their times "
                        "alone count."), *claims]  # fmt: skip

    def time(
        self, cases: Sequence[Case], baselines: Sequence[Baseline], trials: int, worker: Worker | None = None
    ) -> None:
        """Add `trials` readings of every peer to every case, after a warm-up. Raises as `time_gates` does."""
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
                    self._alone(baselines)  # raises if they do not run at all
                    raise WorkerFailed(
                        Failure("limit", f"While it is loaded, the baseline {name} cannot run: {why}")
                    ) from None
                raise JudgeStopped(f"The baseline {name} failed, so there is nothing to compare with: {why}") from None

    def gates(self, judged: bool) -> tuple[GateResult, ...]:
        """Return the gates by these times, or as not reached."""
        if judged and self.readings:
            return score.judge_gates(self.exercise, self.seconds, self._limits)
        return score.unjudged_gates(self.exercise, needs_gpu=self.bench.device != "cuda")

    def timings(self, cases: Sequence[Case]) -> tuple[Timing, ...]:
        """Return the timings for a verdict or a plot."""
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
        """Say which clock counted for the submission, and why."""
        return f"{PRACTICE_CLOCK}; {self._which_clock()}" if self.practised else self._which_clock()

    @property
    def practised(self) -> bool:
        """Whether the practice clock has timed it."""
        return self.bench.practice and bool(self.readings)

    def _which_clock(self) -> str:
        own = [one for peers in self.readings.values() for one in counted(peers.get(OWN, ()))]
        if self.bench.device != "cuda":
            return "none: a simulator has no speed"
        more = "; all its streams shared one queue" if self.one_queue else ""
        if not own:
            return f"none: nothing was timed{more}" if self.exercise.gates else "none: there are no points for speed"
        more += f"; its calls came after the clock had started in {', '.join(sorted(self.late))}" if self.late else ""
        events = sum(one.clock == "events" for one in own)
        share, rounds = f"{100 * clock_choice.AGREEMENT:g} %", plural(len(own), "round")
        if events == len(own):
            return f"CUDA events: the judge's own clock agrees within {share}, in {rounds}{more}"
        if not events:
            return f"the judge's own: CUDA events did not agree with it within {share}, in {rounds}{more}"
        return f"CUDA events in {events} of {rounds}, the judge's own where they were not within {share}{more}"

    def implausible(self) -> Failure | None:
        """Return a failure if a claimed time is below the roofline's floor: no kernel is faster than the hardware."""
        if self._below_the_floor() is not None:
            self.bench.look_at_the_machine_again()
        return self._below_the_floor()

    def _below_the_floor(self) -> Failure | None:
        cases = {case.name: case for case in self.exercise.timed_cases}
        for timing in self.timings(self.exercise.timed_cases):
            if timing.peer == OWN:
                case = cases[timing.case].times(timing.scale)
                floor_us = 1e6 * score.floor_s(self.exercise, case, self.bench.machine)
                if timing.median_us < floor_us:
                    said = f"{timing.case} in {timing.median_us:.1f} µs is faster than this GPU allows"
                    return Failure("implausible", f"{said} ({floor_us:.1f} µs): not believed, and kept for a person.")
        return None

    def _settle_gates(self, worker: Worker) -> None:
        self.time(self.exercise.timed_cases, self._gated, _FIRST_TRIALS, worker)
        if not self._few_suffice() and self._more_trials():
            self.time(self.exercise.timed_cases, self._gated, _TRIALS - _FIRST_TRIALS, worker)
        while score.inconclusive(self.exercise, self.seconds, self._limits) and self._more_trials():
            self.time(self.exercise.timed_cases, self._gated, _TRIALS, worker)

    def _few_suffice(self) -> bool:
        """Whether the first trials settle the gates: undisturbed, no gate near, none in doubt."""
        near = score.near(self.exercise, self.seconds, self._limits) or score.inconclusive(
            self.exercise, self.seconds, self._limits
        )
        return not near and not self._slow_rounds()

    def _more_trials(self) -> bool:
        """Whether more trials are allowed. A case whose clocks disagree has more of them than the others."""
        trials = [len(self.readings[case.name][OWN]) for case in self.exercise.timed_cases]
        return min(trials) < _MOST_TRIALS and max(trials) < 2 * _MOST_TRIALS

    def _alone(self, baselines: Sequence[Baseline]) -> None:
        """Time baselines with no submission alive."""
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

    @property
    def _limits(self) -> score.Limits:
        return score.limits(self.exercise, self.scales, self.bench.machine)

    def _slow_rounds(self) -> list[tuple[str, str, int]]:
        return clock_choice.slow_rounds(self.readings, self._by_itself)

    def _sure(self) -> bool:
        return clock_choice.sure(self.exercise, self.readings, self._by_itself, self._limits)

    def _mostly_slow(self) -> bool:
        return 2 * len(self._slow_rounds()) > clock_choice.baseline_rounds(self.readings)

    def _wide(self) -> bool:
        ratios = [score.gate_ratio(gate, self.seconds) for gate in self.exercise.gates]
        return any(ratio.high - ratio.low > _WIDE * ratio.middle for ratio in ratios)

    def _time(self, cases: Sequence[Case], baselines: Sequence[Baseline], trials: int, worker: Worker | None) -> None:
        bench, exercise = self.bench, self.exercise
        self.progress("preparing the baselines", 0, len(cases))
        base = bench.baseline_worker(exercise, baselines)
        clock = bench.clock_for(base)
        bench.buffers.warm(cases)
        peers = {} if worker is None else {OWN: worker}
        peers |= {f"{exercise.id}:{baseline.id}": base for baseline in baselines}
        for number, case in enumerate(cases):
            self.progress(f"timing {case.name}", number, len(cases))
            self.scales[case.name] = 1
            if self.gated:
                self.scales[case.name] = bench.sizes.scale(exercise, case, bench.machine, bench.buffers)
            scaled = case.times(self.scales[case.name])
            layout = bench.buffers.lay(scaled, launches_for(bench.buffers, bench.machine, exercise, scaled))
            self.launches[case.name] = len(layout.launches)
            if worker is not None:
                worker.plan(layout)
            try:
                base.plan(layout)
            except WorkerFailed as failed:
                raise BaselineFailed("worker", failed.failure.message) from None
            kept = self.readings.setdefault(case.name, {})
            with bench.pool.still(), undisturbed():
                aside = bench.monitor.aside
                seen: list[Excess] = []
                buffers, done = bench.buffers, 0
                limit_s = bench.machine.slowness * exercise.round_limit_s
                early = exercise.head_start and case.name not in self.late
                sample(buffers, layout, exercise, peers, clock, _WARM_UP_LIMIT_S, seen, aside, early, checked=False)
                while done < max(trials, _MOST_TRIALS):
                    found = sample(buffers, layout, exercise, peers, clock, limit_s, seen, aside, early)
                    for peer, reading in found.items():
                        kept.setdefault(peer.split(":")[-1], []).append(reading)
                    done += 1
                    if early and worker is not None and clock_choice.held_up(kept[OWN]):
                        if not self.one_queue:
                            self.one_queue = True
                            raise HeldUp
                        self.late.add(case.name)
                        early, done = False, 0
                        kept.clear()
                        continue
                    if done >= trials and (
                        worker is None or clock_choice.enough(kept[OWN]) or len(kept[OWN]) >= _MOST_TRIALS
                    ):
                        break
            self.taken_too_much |= clock.takes_too_much(seen)
