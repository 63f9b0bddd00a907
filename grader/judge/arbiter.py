"""The arbiter: takes the text of a submission, puts it before its cases and the clock, and gives the verdict."""

from __future__ import annotations

import hashlib
import inspect
import time
from dataclasses import replace
from datetime import UTC, datetime

from grader.errors import MachineLacks, UnusableSubmission
from grader.exercise import Baseline, Exercise
from grader.judge import score
from grader.judge.clock import BaselineFailed, TimedWrong, calibrate
from grader.judge.desk import Desk
from grader.judge.intake import refuse
from grader.judge.job import Job, Progress
from grader.judge.machine import Machine, resolve
from grader.judge.sandbox import strength
from grader.judge.workers import Worker, WorkerFailed
from grader.verdict import Environment, Failure, Timing, Verdict

__all__ = ["Arbiter"]

_PLOT_TRIALS = 6


class Arbiter:
    """Kept between submissions: the buffers, a worker for the baselines, and the next submission's worker, warm."""

    def __init__(self, device: str = "auto") -> None:
        self.device = resolve(device)
        self._next: Worker | None = Worker(self.device)
        self.machine = Machine.measure(self.device)
        self.desk = Desk(self.device)
        self._baselines: Worker | None = None
        self._loaded: set[str] = set()
        self.constant_s = 0.0

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
        job = Job(self, source, exercise, timed and self.device == "cuda", progress)
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
            submission_sha256=hashlib.sha256(source.encode("utf-8", "replace")).hexdigest(),
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
        job = Job(self, source, exercise, True, progress)
        cases = tuple(case for case in exercise.plot_cases if self.desk.fits(case))
        failure = refuse(source, exercise)
        if failure is None:
            worker = self._take()
            try:
                failure = job.load(worker)
                if failure is None:
                    job.time(worker, cases, exercise.baselines, _PLOT_TRIALS)
            except WorkerFailed as failed:
                failure = failed.failure
            except TimedWrong as wrong:
                failure = Failure("wrong_answer", f"The output for {wrong.case} is wrong.")
            finally:
                worker.close()
                self._next = Worker(self.device)
        if failure is not None:
            raise UnusableSubmission(f"{failure.message} `check({exercise.id})` says more.")
        return list(score.timings(exercise, cases, job.seconds, self.machine, job.launches))

    def _take(self) -> Worker:
        worker = self._next or Worker(self.device)
        self._next = None
        try:
            worker.await_ready()
            worker.map(self.desk)
        except WorkerFailed as failed:
            worker.close()
            raise MachineLacks(f"The worker did not start: {failed.failure.message}\n{worker.log[-2000:]}") from None
        return worker

    def baseline_worker(self, exercise: Exercise, baselines: tuple[Baseline, ...]) -> Worker:
        """The worker that runs baselines, with these loaded; the clock's constant is measured when it starts."""
        name = "worker"
        try:
            if self._baselines is None:
                self._baselines = Worker(self.device)
                self._baselines.await_ready()
                self._baselines.map(self.desk)
                self.constant_s = calibrate(self.desk, self._baselines)
            for baseline in baselines:
                name = f"{exercise.id}:{baseline.id}"
                if name not in self._loaded:
                    text = "from typing import Any\n\n\n" + inspect.getsource(baseline.function)
                    self._baselines.load(name, text, baseline.function.__name__, exercise.time_limit_s)
                    self._loaded.add(name)
        except WorkerFailed as failed:
            raise BaselineFailed(name, failed.failure.message) from None
        return self._baselines

    def drop_baselines(self) -> None:
        """Ends the worker of the baselines; the next timing starts another."""
        if self._baselines is not None:
            self._baselines.close()
        self._baselines = None
        self._loaded.clear()

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
