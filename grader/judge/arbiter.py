"""The arbiter: takes the text of a submission, puts it before its cases and the clock, and gives the verdict."""

from __future__ import annotations

import contextlib
import hashlib
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from grader.errors import JudgeStopped, MachineLacks, UnusableSubmission
from grader.exercise import Baseline, Case, Exercise, text_of
from grader.judge import fused, health, memory
from grader.judge.beside import runs_short
from grader.judge.clock import Clock
from grader.judge.desk import Desk
from grader.judge.intake import refuse
from grader.judge.job import Job
from grader.judge.machine import Machine, resolve
from grader.judge.monitor import Monitor, Record
from grader.judge.pool import Loaded, Pool
from grader.judge.reading import Reading
from grader.judge.round import WorkerFailed
from grader.judge.sandbox import strength
from grader.judge.sizes import Sizes
from grader.judge.spread import Spread
from grader.judge.trial import BaselineFailed, HeldUp, TimedWrong
from grader.judge.workers import Worker
from grader.steps import Progress
from grader.verdict import Environment, Failure, Timing, Verdict

__all__ = ["Arbiter"]

_PLOT_TRIALS = 6
_SETTLED_S = 20.0  # for what a killed worker had on the GPU to be gone, before the clock is calibrated


class Arbiter:
    """Kept between submissions: the buffers, the clock, a worker for the baselines, and workers ahead of need."""

    def __init__(self, device: str = "auto", sandbox: bool = True) -> None:
        self.device = resolve(device)
        self.sandbox = sandbox
        self.pool = Pool(self.device, sandbox, memory.beside_the_desk(self.device))
        try:
            with self.pool.quiet:
                self.machine = Machine.measure(self.device)
            self.pool.slowness = self.machine.slowness
            self.desk = Desk(self.device, self.machine)
            self.monitor = Monitor(self.device)
            if self.device == "cuda":
                fused.warm(("float32",))
        except BaseException as error:
            self.pool.close()
            if memory.out_of_memory(error):
                raise memory.TooLittle(memory.SHORT) from None  # what was made of a desk ends with the process only
            raise
        self.sizes = Sizes()
        self.alone: dict[tuple[str, str, str], list[Reading]] = {}  # by exercise, baseline, case: no submission alive
        self._clock: Clock | None = None
        self._baselines: Worker | None = None
        self._loaded: set[str] = set()

    def clock_for(self, base: Worker) -> Clock:
        """The clock, calibrated with the baselines' worker if it is not yet.

        No submission may be alive, and what one left on the GPU must have ended: either would stretch what is
        calibrated.

        Raises:
            BaselineFailed: that worker failed.
            JudgeStopped: the GPU is busy or slow, or does not answer as it should.
            RuntimeError: a submission is alive.
        """
        if self._clock is None:
            if not self.pool.calm():
                raise RuntimeError("the clock was to be calibrated beside a submission")
            if problem := health.settled(self.machine, limit_s=_SETTLED_S):
                raise JudgeStopped(problem)  # a context that is still being torn down would stretch what is calibrated
            try:
                with self.pool.still():
                    self._clock = Clock.calibrate(self.desk, self.machine, base)
            except WorkerFailed as failed:
                raise BaselineFailed("worker", failed.failure.message) from None
        return self._clock

    @property
    def calibrated(self) -> bool:
        return self._clock is not None

    def forget_clock(self) -> Clock | None:
        """Drops the clock and returns it; the next timing calibrates another. No submission may be alive."""
        forgotten, self._clock = self._clock, None
        return forgotten

    def keep_clock(self, clock: Clock | None) -> None:
        """Puts back what `forget_clock` returned."""
        self._clock = clock

    def look_at_the_machine_again(self) -> None:
        """Measures its ceilings once more, and keeps the higher ones: nothing makes them come out too high."""
        again = Machine.measure(self.device)
        self.machine = replace(
            self.machine,
            copy_gbps=max(self.machine.copy_gbps, again.copy_gbps),
            peak_tflops=max(self.machine.peak_tflops, again.peak_tflops),
        )
        self.desk.machine = self.machine

    def sick(self) -> str:
        """Why the GPU is of no use to this process any more, or an empty text.

        Work of somebody else that goes on is no sickness: the notes of a verdict tell of it.
        """
        said = health.settled(self.machine)
        return "" if said.startswith(health.BUSY) else said

    def close(self) -> None:
        """Ends the workers."""
        self.drop_baselines()
        self.pool.close()

    def grade(
        self,
        source: str,
        exercise: Exercise,
        timed: bool = True,
        progress: Progress = lambda *_: None,
        upcoming: Sequence[tuple[str, Exercise]] = (),
        kernels: bool = False,
    ) -> Verdict:
        """The verdict on one submission; whatever the submission does, there is one.

        `upcoming` are those that will be asked for next: some of them are loaded meanwhile. `kernels` asks for findings
        by the kernels that ran, too.

        Raises:
            MachineLacks: this machine lacks what grading needs.
            JudgeStopped: a baseline failed twice; as TooLittle, the GPU's memory was short twice.
        """
        begun, started = time.perf_counter(), datetime.now(UTC)
        self.pool.profiled = kernels

        def graded(again: bool) -> tuple[Job, Failure | None]:
            job = Job(self, source, exercise, timed and self.device == "cuda", progress)
            return job, refuse(source, exercise) or job.run(() if again else upcoming)

        try:
            job, failure = memory.with_room(graded, self._make_way)
        finally:
            self.pool.refill()
            if not upcoming:
                self.pool.trim()
            self.desk.rest()
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
            JudgeStopped: as `grade`.
        """
        if self.device != "cuda":
            raise MachineLacks("Speed needs a GPU; this machine has none.")
        return memory.with_room(lambda _: self._measure(source, exercise, progress), self._make_way)

    def _measure(self, source: str, exercise: Exercise, progress: Progress) -> list[Timing]:
        failure = refuse(source, exercise)
        for last in (False, True):
            if failure is not None:
                break
            job = Job(self, source, exercise, True, progress)
            cases = tuple(case for case in exercise.plot_cases if self.desk.fits(case))
            failure = self._plot(job, cases)
            if last or failure is not None or not runs_short(job.timer.readings):
                break
            self.forget_clock()
        if failure is not None:
            raise UnusableSubmission(f"{failure.message} `check({exercise.id})` says more.")
        return list(job.timer.timings(cases))

    def _plot(self, job: Job, cases: Sequence[Case]) -> Failure | None:
        job.timer.know_baselines()
        job.timer.gated = False
        with contextlib.suppress(HeldUp):
            return self._drawn(job, cases)
        job.timer.forget()
        return self._drawn(job, cases)

    def _drawn(self, job: Job, cases: Sequence[Case]) -> Failure | None:
        loaded = self.take(job.source, job.exercise, job.whole_s, job.timer.one_queue)
        failure = loaded.failure
        try:
            if failure is None:
                loaded.worker.in_turn()
                loaded.worker.map(self.desk)
                job.timer.time(cases, job.exercise.baselines, _PLOT_TRIALS, loaded.worker)
        except WorkerFailed as failed:
            failure = failed.failure
        except TimedWrong as wrong:
            failure = Failure("wrong_answer", f"The output for {wrong.case} is wrong.")
        finally:
            loaded.worker.close()
            self.pool.refill()
            self.desk.rest()
        return failure

    def _make_way(self) -> None:
        """Ends all others' code, and gives back what is kept for later: baselines may wait in the middle of a round."""
        self.drop_baselines()
        self.pool.calm()
        self.desk.rest()

    def take(self, source: str, exercise: Exercise, left_s: float = math.inf, one_queue: bool = False) -> Loaded:
        """A worker that has loaded the submission, or failed to; on the second try with no other submission alive.
        `left_s`: of the submission's time. `one_queue`: a worker whose streams share a queue.

        Raises:
            MachineLacks: no worker comes up.
        """
        try:
            return self.pool.take(source, exercise, left_s, one_queue)
        except WorkerFailed:
            self.pool.reset()
        try:
            return self.pool.take(source, exercise, left_s, one_queue)
        except WorkerFailed as failed:
            detail = failed.failure.detail[-2000:]
            raise MachineLacks(f"The worker did not start: {failed.failure.message}\n{detail}") from None

    def baseline_worker(self, exercise: Exercise, baselines: Sequence[Baseline]) -> Worker:
        """The worker that runs baselines, with these loaded.

        Raises:
            BaselineFailed: one cannot be loaded.
        """
        name = "worker"
        try:
            if self._baselines is None:
                self._baselines = self.pool.fresh()
                self._baselines.map(self.desk, trusted=True)
            for baseline in baselines:
                name = f"{exercise.id}:{baseline.id}"
                if name not in self._loaded:
                    text, entry = text_of(baseline.function), baseline.function.__name__
                    harness = baseline.harness or exercise.harness
                    self._baselines.load(name, text, entry, exercise.time_limit_s, harness)
                    self._loaded.add(name)
        except WorkerFailed as failed:
            raise BaselineFailed(name, failed.failure.message) from None
        return self._baselines

    def measured(self, spread: Spread, exercise: Exercise) -> list[tuple[Any, ...]]:
        """The answers of the exercise's own `measure` on the inputs that were dealt.

        Raises:
            JudgeStopped: it failed twice, so that nobody knows the right answer.
        """
        assert exercise.measure is not None
        measure = Baseline("measure", "the exercise's own measurement", exercise.measure)
        for last in (False, True):
            try:
                worker = self.baseline_worker(exercise, (measure,))
                apart = self.desk.apart(spread)
                worker.plan(apart)
                with self.pool.still():
                    worker.round(f"{exercise.id}:{measure.id}", self.desk, exercise.time_limit_s, head_start=False)
                return self.desk.answers(apart)
            except (WorkerFailed, BaselineFailed) as failed:
                self.drop_baselines()
                if last:
                    said = f"What is expected of {exercise.id} could not be measured"
                    raise JudgeStopped(f"{said}: {failed.args[-1]}") from None
        raise AssertionError

    def drop_baselines(self) -> None:
        """Ends the worker of the baselines; the next timing starts another."""
        if self._baselines is not None:
            self._baselines.close()
        self._baselines = None
        self._loaded.clear()

    def environment(self, record: Record | None) -> Environment:
        """Where this verdict was reached; `record` is what NVML saw while it was timed."""
        machine = self.machine
        return Environment(
            device=self.device,
            gpu=machine.gpu,
            driver=machine.driver,
            torch=machine.torch,
            triton=machine.triton,
            python=machine.python,
            sandbox=strength(self.sandbox),
            copy_gbps=machine.copy_gbps or None,
            sm_clock_mhz=record.sm_clock_mhz if record else None,
            memory_clock_mhz=record.memory_clock_mhz if record else None,
            temperature_c=record.temperature_c if record else None,
            notes=record.notes() if record else (),
        )
