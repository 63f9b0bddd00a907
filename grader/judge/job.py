"""One submission on its way through cases and clock to its verdict."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from grader.errors import JudgeStopped, MachineLacks
from grader.exercise import Baseline, Case, Exercise
from grader.judge import score
from grader.judge.clock import BaselineFailed, TimedWrong, launches_for, sample
from grader.judge.workers import Worker, WorkerFailed
from grader.verdict import CaseResult, Failure, GateResult, Verdict
from grader.version import __version__

if TYPE_CHECKING:
    from grader.judge.arbiter import Arbiter

__all__ = ["Job", "Progress"]

Progress = Callable[[str, int, int], None]
Status = Literal["passed", "failed", "unusable"]
_TRIALS, _MOST_TRIALS = 7, 28
_WARM_UP_LIMIT_S = 120.0  # a first round may compile: Triton, or torch.compile on a slow machine
_IMPLAUSIBLE = 1.5  # times the bandwidth of a copy, from buffers that no cache holds; honest kernels reach 1.05
_STUBS = ("# YOUR CODE HERE", "// YOUR CODE HERE")
_LOG_CHARACTERS = 4000


class Job:
    """One submission on its way through cases and clock."""

    def __init__(self, arbiter: Arbiter, source: str, exercise: Exercise, timed: bool, progress: Progress) -> None:
        self.arbiter, self.source, self.exercise = arbiter, source, exercise
        self.timed, self.progress = timed, progress
        self.cases: list[CaseResult] = []
        self.seconds: dict[str, dict[str, list[float]]] = {}
        self.launches: dict[str, int] = {}
        self.log = ""

    @property
    def all_cases(self) -> tuple[Case, ...]:
        on_gpu = self.arbiter.device == "cuda"
        return self.exercise.cases if on_gpu else self.exercise.simulator_cases

    def run(self, worker: Worker) -> Failure | None:
        """Cases first, then the clock. Returns what failed outside of any one case."""
        failure = self.load(worker)
        if failure is not None:
            return failure
        for number, case in enumerate(self.all_cases):
            self.progress(f"checking {case.name}", number, len(self.all_cases))
            result = self._case(worker, case)
            self.cases.append(result)
            if result.failure is not None:
                return result.failure
        if self.timed and self.exercise.gates and all(case.passed for case in self.cases):
            try:
                self._time_gates(worker)
                return self._implausible()
            except WorkerFailed as failed:
                return failed.failure
            except TimedWrong as wrong:
                self.cases.append(CaseResult(f"{wrong.case}, while timed", False, mismatch=wrong.mismatch))
        return None

    def load(self, worker: Worker) -> Failure | None:
        """Imports the submission in the worker."""
        building = "building the extension" if self.exercise.backend == "cuda" else "importing the cell"
        self.progress(building, 0, len(self.all_cases))
        try:
            worker.load("submission", self.source, self.exercise.entry, self.exercise.time_limit_s)
        except WorkerFailed as failed:
            return failed.failure
        return None

    def _case(self, worker: Worker, case: Case) -> CaseResult:
        desk = self.arbiter.desk
        if not desk.fits(case):
            raise MachineLacks(f"The case {case.name} needs more memory than this machine has free.")
        spread = desk.lay(case)
        desk.deal(spread)
        try:
            worker.plan(spread)
            first = not self.cases
            limit_s = self.exercise.time_limit_s if first else self.exercise.round_limit_s
            worker.round("submission", desk, limit_s)
        except WorkerFailed as failed:
            return CaseResult(case.name, False, failure=failed.failure)
        mismatch = desk.check(spread, self.exercise)
        if mismatch and desk.unwritten(spread) and any(stub in self.source for stub in _STUBS):
            failure = Failure("not_written", "The exercise is not written yet.")
            return CaseResult(case.name, False, failure=failure)
        return CaseResult(case.name, mismatch is None, mismatch=mismatch)

    def _time_gates(self, worker: Worker) -> None:
        exercise = self.exercise
        needed = {gate.baseline for gate in exercise.gates}
        baselines = tuple(b for b in exercise.baselines if b.id in needed)
        self.time(worker, exercise.timed_cases, baselines, _TRIALS)
        while score.inconclusive(exercise, self.seconds) and self._trials() < _MOST_TRIALS:
            self.time(worker, exercise.timed_cases, baselines, _TRIALS)

    def _implausible(self) -> Failure | None:
        """A claim below the roofline's floor is refused: no kernel moves its bytes faster than memory does."""
        found = score.timings(
            self.exercise, self.exercise.timed_cases, self.seconds, self.arbiter.machine, self.launches
        )
        for timing in found:
            if timing.peer == "submission" and timing.share_of_roofline > _IMPLAUSIBLE:
                share = f"{timing.share_of_roofline:.1f} times the bandwidth of a copy"
                return Failure(
                    "exception", f"{timing.case} in {timing.median_us:.1f} µs would be {share}: not believed."
                )
        return None

    def _trials(self) -> int:
        return len(self.seconds[self.exercise.timed_cases[0].name]["submission"])

    def time(self, worker: Worker, cases: tuple[Case, ...], baselines: tuple[Baseline, ...], trials: int) -> None:
        """Adds `trials` samples of every peer to every case; the first round of a case warms up and is not counted.

        Raises:
            WorkerFailed: the submission failed.
            TimedWrong: one of its outputs is wrong.
            JudgeStopped: a baseline failed twice, which is no fault of the submission.
        """
        try:
            self._time(worker, cases, baselines, trials)
        except BaselineFailed:
            self.arbiter.drop_baselines()
            self.seconds.clear()
            try:
                self._time(worker, cases, baselines, trials)
            except BaselineFailed as failed:
                self.arbiter.drop_baselines()
                name, why = failed.args
                raise JudgeStopped(f"The baseline {name} failed, so there is nothing to compare with: {why}") from None

    def _time(self, worker: Worker, cases: tuple[Case, ...], baselines: tuple[Baseline, ...], trials: int) -> None:
        arbiter, exercise = self.arbiter, self.exercise
        self.progress("preparing the baselines", 0, len(cases))
        base = arbiter.baseline_worker(exercise, baselines)
        peers = {"submission": worker} | {f"{exercise.id}:{baseline.id}": base for baseline in baselines}
        for number, case in enumerate(cases):
            self.progress(f"timing {case.name}", number, len(cases))
            spread = arbiter.desk.lay(case, launches_for(arbiter.desk, arbiter.machine, exercise, case))
            self.launches[case.name] = len(spread.launches)
            worker.plan(spread)
            try:
                base.plan(spread)
            except WorkerFailed as failed:
                raise BaselineFailed("worker", failed.failure.message) from None
            kept = self.seconds.setdefault(case.name, {})
            for trial in range(trials + 1):
                limit_s = exercise.round_limit_s if trial else _WARM_UP_LIMIT_S
                seconds = sample(arbiter.desk, spread, exercise, peers, arbiter.constant_s, limit_s)
                for peer, value in seconds.items():
                    if trial:
                        kept.setdefault(peer.split(":")[-1], []).append(value)

    def verdict(self, failure: Failure | None) -> Verdict:
        """What the cases and the clock amount to."""
        exercise, on_gpu = self.exercise, self.arbiter.device == "cuda"
        correct = failure is None and bool(self.cases) and all(case.passed for case in self.cases)
        if correct and self.seconds:
            gates = score.judge_gates(exercise, self.seconds)
            times = score.timings(exercise, exercise.timed_cases, self.seconds, self.arbiter.machine, self.launches)
        else:
            gates, times = score.unjudged_gates(exercise, needs_gpu=not on_gpu), ()
        done = {case.name for case in self.cases}
        not_run = [CaseResult(case.name, False) for case in self.all_cases if case.name not in done]
        return Verdict(
            exercise=exercise.id,
            title=exercise.title,
            status=_status(failure, correct, gates),
            points=(exercise.correctness_points if correct else 0.0) + sum(gate.points for gate in gates),
            max_points=exercise.max_points,
            reachable_points=exercise.max_points if on_gpu else exercise.correctness_points,
            submission_sha256="",
            environment=self.arbiter.environment(),
            cases=(*self.cases, *not_run),
            gates=gates,
            timings=times,
            failure=failure,
            log=self.log[:_LOG_CHARACTERS],
            grader=__version__,
        )


def _status(failure: Failure | None, correct: bool, gates: tuple[GateResult, ...]) -> Status:
    if failure is not None and failure.kind == "unusable":
        return "unusable"
    return "passed" if correct and all(gate.outcome != "failed" for gate in gates) else "failed"
