"""The arbiter grades and measures submissions: it takes their text and returns a verdict or timings."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from grader.errors import MachineLacks, UnusableSubmission
from grader.exercise import Case, Exercise
from grader.judge import inquiry
from grader.judge.bench import Bench
from grader.judge.gpu import health
from grader.judge.job import Job
from grader.judge.process.worker import WorkerFailed
from grader.judge.screening import refuse
from grader.judge.timing.trial import HeldUp, TimedWrong
from grader.verdict import Failure, Progress, Timing, Verdict

_PLOT_TRIALS = 6


class Arbiter:
    """Grades and measures submissions, one after the other, on one bench."""

    def __init__(self, device: str = "auto", sandbox: bool | None = None) -> None:
        self.bench = Bench(device, sandbox)

    def sick(self) -> str:
        """Return why this process can no longer use the GPU, or "". A busy GPU does not count; the verdict notes it."""
        said = health.settled(self.bench.machine)
        return "" if said.startswith(health.BUSY) else said

    def close(self) -> None:
        """End the workers."""
        self.bench.close()

    def grade(
        self,
        source: str,
        exercise: Exercise,
        timed: bool = True,
        progress: Progress = lambda *_: None,
        upcoming: Sequence[tuple[str, Exercise]] = (),
        kernels: bool = False,
    ) -> Verdict:
        """Return the verdict on one submission, whatever the submission does.

        The `upcoming` submissions are graded next; some load in the background. `kernels` adds findings from a profile.
        Raises as `service.Judge.grade` does, and TooLittle if the GPU ran out of memory twice.
        """
        begun, started = time.perf_counter(), datetime.now(UTC)
        self.bench.pool.profiled = kernels

        def graded(again: bool) -> tuple[Job, Failure | None]:
            job = Job(self.bench, source, exercise, timed and self.bench.device == "cuda", progress)
            return job, refuse(source, exercise) or job.run(() if again else upcoming)

        try:
            job, failure = health.with_room(graded, self.bench.make_way)
        finally:
            self.bench.pool.refill()
            if not upcoming:
                self.bench.pool.trim()
            self.bench.buffers.rest()
        return replace(
            job.verdict(failure),
            submission_sha256=hashlib.sha256(source.encode("utf-8", "replace")).hexdigest(),
            started_at=started.isoformat(timespec="seconds"),
            seconds=round(time.perf_counter() - begun, 3),
        )

    def evidence(
        self,
        source: str,
        exercise: Exercise,
        progress: Progress = lambda *_: None,
        upcoming: Sequence[tuple[str, Exercise]] = (),
        beside_gpu: bool = False,
    ) -> dict[str, Any]:
        """Return evidence about why a right submission is slow, for `Evidence.of_claims`.

        There is none about a submission that fails or is wrong. Afterwards a worker with the profiler stands ready for
        the next question.
        """
        if refuse(source, exercise):
            return inquiry.nothing(self.bench)
        self.bench.pool.profiled = self.bench.device == "cuda"
        try:
            return health.with_room(
                lambda again: inquiry.gather(
                    self.bench, source, exercise, progress, () if again else upcoming, beside_gpu
                ),
                self.bench.make_way,
            )
        finally:
            self.bench.pool.refill()
            if not upcoming:
                self.bench.pool.trim()
            self.bench.buffers.rest()

    def measure(self, source: str, exercise: Exercise, progress: Progress = lambda *_: None) -> list[Timing]:
        """Time the submission and every baseline on the plot cases, as `service.Judge.measure`; check every output."""
        if self.bench.device != "cuda":
            raise MachineLacks("Speed needs a GPU; this machine has none.")
        self.bench.pool.profiled = False
        return health.with_room(lambda _: self._measure(source, exercise, progress), self.bench.make_way)

    def _measure(self, source: str, exercise: Exercise, progress: Progress) -> list[Timing]:
        job = Job(self.bench, source, exercise, True, progress)
        cases = tuple(case for case in exercise.plot_cases if self.bench.buffers.fits(case))
        if failure := refuse(source, exercise) or self._plot(job, cases):
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
        loaded = self.bench.take(job.source, job.exercise, job.whole_s, job.timer.one_queue)
        failure = loaded.failure
        try:
            if failure is None:
                loaded.worker.in_turn()
                loaded.worker.map(self.bench.buffers)
                job.timer.time(cases, job.exercise.baselines, _PLOT_TRIALS, loaded.worker)
        except WorkerFailed as failed:
            failure = failed.failure
        except TimedWrong as wrong:
            failure = Failure("wrong_answer", f"The output for {wrong.case} is wrong.")
        finally:
            loaded.worker.close()
            self.bench.pool.refill()
            self.bench.buffers.rest()
        return failure
