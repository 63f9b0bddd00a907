"""The arbiter: takes the text of a submission, puts it before its cases and the clock, and gives the verdict."""

from __future__ import annotations

import hashlib
import inspect
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal

from grader.errors import MachineLacks, UnusableSubmission
from grader.exercise import Baseline, Case, Exercise
from grader.judge import score
from grader.judge.clock import TimedWrong, calibrate, launches_for, sample
from grader.judge.desk import Desk, Spread
from grader.judge.intake import refuse
from grader.judge.machine import Machine, resolve
from grader.judge.sandbox import strength
from grader.judge.workers import Worker, WorkerFailed
from grader.verdict import CaseResult, Environment, Failure, GateResult, Timing, Verdict
from grader.version import __version__

__all__ = ["Arbiter", "Progress"]

Progress = Callable[[str, int, int], None]
Status = Literal["passed", "failed", "unusable"]
_TRIALS, _MOST_TRIALS, _PLOT_TRIALS = 7, 28, 5
_STUBS = ("# YOUR CODE HERE", "// YOUR CODE HERE")
_LOG_CHARACTERS = 4000


class Arbiter:
    """Kept between submissions: the buffers, a worker for the baselines, and the next submission's worker, warm."""

    def __init__(self, device: str = "auto") -> None:
        self.device = resolve(device)
        self._next: Worker | None = Worker(self.device)
        self.machine = Machine.measure(self.device)
        self.desk = Desk(self.device)
        self._baselines: Worker | None = None
        self._loaded: set[str] = set()
        self._constant_s = 0.0

    def close(self) -> None:
        """Ends the workers."""
        for worker in (self._next, self._baselines):
            if worker is not None:
                worker.close()
        self._next = self._baselines = None

    def grade(
        self, source: str, exercise: Exercise, timed: bool = True, progress: Progress = lambda *_: None
    ) -> Verdict:
        """The verdict on one submission; whatever the submission does, there is one."""
        begun, started = time.perf_counter(), datetime.now(UTC)
        job = _Job(self, source, exercise, timed and self.device == "cuda", progress)
        failure = refuse(source, exercise)
        if failure is None:
            worker = self._take()
            try:
                failure = job.run(worker)
            finally:
                job.log = worker.log
                worker.close()
                self._next = Worker(self.device)
        return replace(
            job.verdict(failure),
            submission_sha256=hashlib.sha256(source.encode()).hexdigest(),
            started_at=started.isoformat(timespec="seconds"),
            seconds=round(time.perf_counter() - begun, 3),
        )

    def measure(self, source: str, exercise: Exercise, progress: Progress = lambda *_: None) -> list[Timing]:
        """Times the submission and every baseline over the exercise's plot cases; every output is checked.

        Raises:
            MachineLacks: there is no GPU.
            UnusableSubmission: it fails or is wrong; `grade` says more.
        """
        if self.device != "cuda":
            raise MachineLacks("Speed needs a GPU; this machine has none.")
        job = _Job(self, source, exercise, True, progress)
        failure = refuse(source, exercise)
        if failure is None:
            worker = self._take()
            try:
                failure = job.load(worker)
                if failure is None:
                    job.time(worker, exercise.plot_cases, exercise.baselines, _PLOT_TRIALS)
            except WorkerFailed as failed:
                failure = failed.failure
            except TimedWrong as wrong:
                failure = Failure("wrong_answer", f"The output for {wrong.case} is wrong.")
            finally:
                worker.close()
                self._next = Worker(self.device)
        if failure is not None:
            raise UnusableSubmission(f"{failure.message} `check({exercise.id})` says more.")
        return list(score.timings(exercise, exercise.plot_cases, job.seconds, self.machine, job.launches))

    def _take(self) -> Worker:
        worker = self._next or Worker(self.device)
        self._next = None
        try:
            worker.await_ready()
        except WorkerFailed as failed:
            worker.close()
            raise MachineLacks(f"The worker did not start: {failed.failure.message}\n{worker.log[-2000:]}") from None
        worker.map(self.desk)
        return worker

    def baseline_worker(self, exercise: Exercise, baselines: tuple[Baseline, ...]) -> Worker:
        """The worker that runs baselines, with these loaded; the clock's constant is measured when it starts."""
        if self._baselines is None:
            self._baselines = Worker(self.device)
            self._baselines.await_ready()
            self._baselines.map(self.desk)
            self._constant_s = calibrate(self.desk, self._baselines)
        for baseline in baselines:
            name = f"{exercise.id}:{baseline.id}"
            if name not in self._loaded:
                text = "from typing import Any\n\n\n" + inspect.getsource(baseline.function)
                self._baselines.load(name, text, baseline.function.__name__, exercise.time_limit_s)
                self._loaded.add(name)
        return self._baselines

    @property
    def constant_s(self) -> float:
        return self._constant_s

    def environment(self) -> Environment:
        machine = self.machine
        clock = "the arbiter's wall clock" if self.device == "cuda" else "none: a simulator has no speed"
        return Environment(
            device=self.device,
            gpu=machine.gpu,
            driver=machine.driver,
            torch=machine.torch,
            triton=machine.triton,
            python=machine.python,
            sandbox=strength(),
            clock=clock,
            copy_gbps=machine.copy_gbps or None,
        )


class _Job:
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
        spread = desk.lay(case)
        desk.deal(spread)
        try:
            worker.plan(spread)
            first = not self.cases
            limit_s = self.exercise.time_limit_s if first else self.exercise.round_limit_s
            worker.round("submission", desk, spread, limit_s)
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

    def _trials(self) -> int:
        return len(self.seconds[self.exercise.timed_cases[0].name]["submission"])

    def time(self, worker: Worker, cases: tuple[Case, ...], baselines: tuple[Baseline, ...], trials: int) -> None:
        """Adds `trials` samples of every peer to every case; the first round of a case warms up and is not counted.

        Raises:
            WorkerFailed: the submission failed.
            TimedWrong: one of its outputs is wrong.
        """
        arbiter, exercise = self.arbiter, self.exercise
        self.progress("preparing the baselines", 0, len(cases))
        base = arbiter.baseline_worker(exercise, baselines)
        peers = {"submission": worker} | {f"{exercise.id}:{baseline.id}": base for baseline in baselines}
        for number, case in enumerate(cases):
            self.progress(f"timing {case.name}", number, len(cases))
            spread: Spread = arbiter.desk.lay(case, launches_for(arbiter.desk, arbiter.machine, exercise, case))
            self.launches[case.name] = len(spread.launches)
            for each in (worker, base):
                each.plan(spread)
            kept = self.seconds.setdefault(case.name, {})
            for trial in range(trials + 1):
                seconds = sample(arbiter.desk, spread, exercise, peers, arbiter.constant_s)
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
