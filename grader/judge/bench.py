"""A judge's state between submissions: workers, buffers, the clock, problem sizes, and the machine's measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from grader.errors import JudgeStopped, MachineLacks
from grader.exercise import Baseline, Case, Exercise, text_of
from grader.judge import score
from grader.judge.checking import fused_compare
from grader.judge.checking.buffers import Buffers, Layout, laid
from grader.judge.gpu import health, sharing
from grader.judge.gpu.ceilings import Machine, resolve
from grader.judge.gpu.nvml import Monitor, Record
from grader.judge.process.pool import Loaded, Pool
from grader.judge.process.worker import Worker, WorkerFailed
from grader.judge.sandbox import strength
from grader.judge.timing.clock import Clock
from grader.judge.timing.clock_choice import Reading
from grader.judge.timing.trial import BaselineFailed
from grader.protocol.target import target
from grader.verdict import Environment

_SETTLED_S = 20.0  # time for a killed worker's GPU work to end before the clock is calibrated
_LAUNCH_S = 480e-6  # of a timed case, by the roofline; merging launches saves about 3.8 µs per launch
_MOST_ELEMENTS = (1 << 31) - (1 << 24)  # per array: offsets of a block past its end still fit an int
_FEWEST_LAUNCHES = 4


class Bench:
    """Made once per judge and shared by all submissions that it grades.

    `alone`: readings of baselines while no submission was alive, by exercise, baseline and case. `practice`: whether
    all times are those of the practice clock, because judge and workers share no memory of the GPU.
    """

    def __init__(self, device: str = "auto", sandbox: bool | None = None) -> None:
        strength(sandbox)  # raises if a sandbox is required and none is available
        self.device = resolve(device)
        self.sandbox = sandbox
        try:
            target()
        except ValueError as error:
            raise MachineLacks(str(error)) from None
        self.pool = Pool(self.device, sandbox, health.beside_the_buffers(self.device))
        try:
            with self.pool.quiet:
                self.machine = Machine.measure(self.device)
            self.pool.slowness = self.machine.slowness
            staged = sharing.memory(self.device)[0] == "host"
            self.buffers = Buffers(self.device, self.machine, staged)
            self.practice = staged and self.device == "cuda"
            self.monitor = Monitor(self.device)
            if self.device == "cuda":
                fused_compare.warm(("float32",))
        except BaseException as error:
            self.pool.close()
            if health.out_of_memory(error):
                raise health.TooLittle(health.SHORT) from None  # only the process's end frees the buffers
            raise
        self.sizes = ProblemSizes()
        self.alone: dict[tuple[str, str, str], list[Reading]] = {}
        self._clock: Clock | None = None
        self._baselines: Worker | None = None
        self._loaded: set[str] = set()

    def clock_for(self, base: Worker) -> Clock:
        """Return the clock; the first call calibrates it with the baselines' worker.

        Live submissions, or work that one left on the GPU, would lengthen the calibration.

        Raises:
            BaselineFailed: that worker failed.
            JudgeStopped: the GPU is busy, slow or broken.
            RuntimeError: a submission is alive.
        """
        if self._clock is None:
            if not self.pool.calm():
                raise RuntimeError("cannot calibrate the clock while a submission is alive")
            if problem := health.settled(self.machine, limit_s=_SETTLED_S):
                raise JudgeStopped(problem)
            try:
                with self.pool.still():
                    self._clock = Clock.calibrate(self.buffers, self.machine, base)
            except WorkerFailed as failed:
                raise BaselineFailed("worker", failed.failure.message) from None
        return self._clock

    @property
    def calibrated(self) -> bool:
        return self._clock is not None

    def forget_clock(self) -> None:
        """Drop the clock; the next timing calibrates a new one."""
        self._clock = None

    def look_at_the_machine_again(self) -> None:
        """Measure the ceilings again and keep the higher ones: noise can only lower them."""
        again = Machine.measure(self.device)
        self.machine = replace(
            self.machine,
            copy_gbps=max(self.machine.copy_gbps, again.copy_gbps),
            peak_tflops=max(self.machine.peak_tflops, again.peak_tflops),
        )
        self.buffers.machine = self.machine

    def make_way(self) -> None:
        """End all workers with code, baselines in mid-round included, and free cached memory."""
        self.drop_baselines()
        self.pool.calm()
        self.buffers.rest()

    def close(self) -> None:
        """End the workers."""
        self.drop_baselines()
        self.pool.close()

    def take(self, source: str, exercise: Exercise, left_s: float = math.inf, one_queue: bool = False) -> Loaded:
        """Return a worker that has loaded the submission, or failed to. A second try ends all other submissions first.

        `left_s`: the submission's remaining time. `one_queue`: the worker's streams share a hardware queue.

        Raises:
            MachineLacks: no worker starts.
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
        """Return the baselines' worker with these loaded, or raise BaselineFailed."""
        name = "worker"
        try:
            if self._baselines is None:
                self._baselines = self.pool.fresh()
                self._baselines.map(self.buffers, trusted=True)
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

    def measured(self, layout: Layout, exercise: Exercise) -> list[tuple[Any, ...]]:
        """Return the answers of the exercise's own `measure` on the current inputs, or raise JudgeStopped."""
        assert exercise.measure is not None
        measure = Baseline("measure", "the exercise's own measurement", exercise.measure)
        for last in (False, True):
            try:
                worker = self.baseline_worker(exercise, (measure,))
                apart = self.buffers.apart(layout)
                worker.plan(apart)
                with self.pool.still():
                    worker.round(f"{exercise.id}:{measure.id}", self.buffers, exercise.time_limit_s, head_start=False)
                return self.buffers.answers(apart)
            except (WorkerFailed, BaselineFailed) as failed:
                self.drop_baselines()
                if last:
                    raise JudgeStopped(f"Measuring the answer of {exercise.id} failed: {failed.args[-1]}") from None
        raise AssertionError

    def drop_baselines(self) -> None:
        """End the baselines' worker; the next timing starts a new one."""
        if self._baselines is not None:
            self._baselines.close()
        self._baselines = None
        self._loaded.clear()

    def environment(self, record: Record | None) -> Environment:
        """Return the environment of a verdict; `record` is NVML's record of its timing."""
        seen = record or Record()
        names = {name: getattr(self.machine, name) for name in ("device", "gpu", "driver", "torch", "triton", "python")}
        clocks = {name: getattr(seen, name) for name in ("sm_clock_mhz", "memory_clock_mhz", "temperature_c")}
        return Environment(
            **names,
            **clocks,
            sandbox=strength(self.sandbox),
            copy_gbps=self.machine.copy_gbps or None,
            peak_tflops=self.machine.peak_tflops or None,
            notes=seen.notes(),
        )


class ProblemSizes:
    """The factor on the rows of each exercise's timed cases.

    Launches get as long as memory and 32-bit indices allow, up to a limit. The factor is found while no submission is
    alive, because one that holds memory must not choose it. It grows later if memory was the limit and is free again.
    """

    def __init__(self) -> None:
        self._scales: dict[tuple[str, str], int] = {}
        self._cramped: set[tuple[str, str]] = set()

    def scale(self, exercise: Exercise, case: Case, machine: Machine, buffers: Buffers) -> int:
        """Return the factor for a case."""
        key = exercise.id, case.name
        if key not in self._scales:
            self._grow(exercise, case, machine, buffers)
        return self._scales[key]

    def outgrown(self, exercise: Exercise, case: Case, machine: Machine, buffers: Buffers) -> bool:
        """Whether a case limited by memory can grow now, which makes its earlier timings obsolete."""
        key = exercise.id, case.name
        before = self._scales.get(key)
        if key in self._cramped:
            self._grow(exercise, case, machine, buffers)
        return self._scales.get(key) != before

    def _grow(self, exercise: Exercise, case: Case, machine: Machine, buffers: Buffers) -> None:
        key = exercise.id, case.name
        scale = self._scales.get(key, 1)
        self._cramped.discard(key)
        wanted_s = _LAUNCH_S / exercise.over_ceiling
        while case.times(2) != case and score.ceiling_s(exercise, case.times(scale), machine) < wanted_s:
            larger = case.times(2 * scale)
            if max(slot.span for slot in laid(larger, 1).launches[0].values()) > _MOST_ELEMENTS:
                break
            if not buffers.fits(larger, _FEWEST_LAUNCHES):
                self._cramped.add(key)
                break
            scale *= 2
        self._scales[key] = scale
