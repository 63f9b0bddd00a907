"""What a judge keeps between submissions: workers, buffers, the clock, and what it knows of the machine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from grader.errors import JudgeStopped, MachineLacks
from grader.exercise import Baseline, Exercise, text_of
from grader.judge.checking import fused_compare
from grader.judge.checking.buffers import Desk, Spread
from grader.judge.gpu import health
from grader.judge.gpu.ceilings import Machine, resolve
from grader.judge.gpu.nvml import Monitor, Record
from grader.judge.process.pool import Loaded, Pool
from grader.judge.process.worker import Worker, WorkerFailed
from grader.judge.sandbox import strength
from grader.judge.timing.clock import Clock
from grader.judge.timing.clock_choice import Reading
from grader.judge.timing.problem_size import Sizes
from grader.judge.timing.trial import BaselineFailed
from grader.verdict import Environment

_SETTLED_S = 20.0  # for what a killed worker had on the GPU to be gone, before the clock is calibrated


class Bench:
    """Made once per judge, and shared by every submission that it grades.

    Attributes:
        pool: workers, started before they are needed.
        desk: the buffers that workers map, and the check of what they leave there.
        monitor: NVML's record of a timing.
        sizes: how large each timed case is on this GPU.
        alone: readings of baselines with no submission alive, by exercise, baseline and case.
    """

    def __init__(self, device: str = "auto", sandbox: bool | None = None) -> None:
        strength(sandbox)  # raises where a sandbox is required and there is none
        self.device = resolve(device)
        self.sandbox = sandbox
        self.pool = Pool(self.device, sandbox, health.beside_the_desk(self.device))
        try:
            with self.pool.quiet:
                self.machine = Machine.measure(self.device)
            self.pool.slowness = self.machine.slowness
            self.desk = Desk(self.device, self.machine)
            self.monitor = Monitor(self.device)
            if self.device == "cuda":
                fused_compare.warm(("float32",))
        except BaseException as error:
            self.pool.close()
            if health.out_of_memory(error):
                raise health.TooLittle(health.SHORT) from None  # what was made of a desk ends with the process only
            raise
        self.sizes = Sizes()
        self.alone: dict[tuple[str, str, str], list[Reading]] = {}
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

    def forget_clock(self) -> None:
        """Drops the clock; the next timing calibrates another. No submission may be alive."""
        self._clock = None

    def look_at_the_machine_again(self) -> None:
        """Measures its ceilings once more, and keeps the higher ones: nothing makes them come out too high."""
        again = Machine.measure(self.device)
        self.machine = replace(
            self.machine,
            copy_gbps=max(self.machine.copy_gbps, again.copy_gbps),
            peak_tflops=max(self.machine.peak_tflops, again.peak_tflops),
        )
        self.desk.machine = self.machine

    def make_way(self) -> None:
        """Ends all other code and frees what is kept for later: baselines may wait in the middle of a round."""
        self.drop_baselines()
        self.pool.calm()
        self.desk.rest()

    def close(self) -> None:
        """Ends the workers."""
        self.drop_baselines()
        self.pool.close()

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
