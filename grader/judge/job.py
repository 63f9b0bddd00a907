"""The grading of one submission: its cases, its timing, its verdict."""

from __future__ import annotations

import contextlib
import math
import re
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from grader.bottleneck.breakdown import breakdown, timed
from grader.bottleneck.diagnosis import causes
from grader.bottleneck.evidence import Evidence
from grader.bottleneck.time_model import headroom_of
from grader.errors import MachineLacks
from grader.exercise import Case, Exercise
from grader.judge import inquiry, rules, score
from grader.judge.bench import Bench
from grader.judge.checking.buffers import Layout
from grader.judge.checking.compare import uncontradicted
from grader.judge.gpu.ceilings import whole_limit_s
from grader.judge.gpu.health import TooLittle, out_of_memory, stays
from grader.judge.process.pool import Loaded
from grader.judge.process.worker import Worker, WorkerFailed, stopped
from grader.judge.screening import waits_for_nobody
from grader.judge.timing.timer import Timer
from grader.judge.timing.trial import HeldUp, TimedWrong
from grader.verdict import Breakdown, CaseResult, Cause, Failure, Finding, Mismatch, Progress, Verdict
from grader.version import __version__

Status = Literal["passed", "not_judged", "failed", "unusable"]
_KERNELS_LIMIT_S = 20.0  # for the untimed, profiled launch
_ADDED_TO_NAN = (
    "`{}` holds NaN before the launch, and NaN + x is NaN: set it to 0 before you add to it, or store the sum instead."
)
_WITHOUT_A_VALUE = (
    "A variable of the kernel is read before it has a value, so it begins with whatever was in memory: with 0 there, "
    "this case is right. Does every sum start at 0?"
)
_LEFT = (
    "In a first call this case is right, and after another call with the same shape it is wrong. Something is left "
    "from that call: a result, a sum or a counter that is kept. Compute it or set it again in each call."
)
_OF_SCRATCH = re.compile(r"of `[^`]*\(")  # a place that is named by a call, such as `torch.empty(8)`
_STORES = re.compile(r"^`\w+` is written (?:past|before)")  # of Triton
_LARGE = 1e30  # such a variable is -1.7e38 in the simulator
_AGAIN = ", called again"
_TRIES = 3  # a result that is wrong by chance is right and wrong in this order six times in at most one of 64 gradings
_AGAIN_SHARE = 0.05  # of the operations of all cases, for one that is called again
_COMPILE_LIMIT_S = 30.0  # to wait for, after the cases
_STUBS = ("# YOUR CODE HERE", "// YOUR CODE HERE")
_LOG_CHARACTERS = 4000
_SHORT = (  # errors of a machine that has run out of processes, files or memory
    "Resource temporarily unavailable", "Too many open files in system", "Killed signal", "Cannot allocate memory",
)  # fmt: skip


class Job:
    """The grading of one submission."""

    def __init__(self, bench: Bench, source: str, exercise: Exercise, timed: bool, progress: Progress) -> None:
        self.bench, self.source, self.exercise = bench, source, exercise
        self.timed, self.progress = timed and bool(exercise.gates), progress
        self.cases: list[CaseResult] = []
        self.findings: list[Finding] = []
        self.timer = Timer(bench, exercise, progress)
        self.log = ""
        self.uncompiled = ""  # why a kernel was not compiled for a GPU
        self.causes: tuple[Cause, ...] = ()  # why a gate was missed
        self.breakdown: Breakdown | None = None
        self.whole_s = whole_limit_s(exercise, bench.device, bench.machine.slowness)
        self._left_s, self._repeats = self.whole_s, False
        self._of_source: tuple[Finding, ...] = ()
        self._beside = False
        self._adds: bool | None = None  # whether a wrong case is right if `out` begins as 0, once that was tried

    @property
    def all_cases(self) -> tuple[Case, ...]:
        on_gpu = self.bench.device == "cuda"
        return self.exercise.cases if on_gpu else self.exercise.simulator_cases

    @property
    def _limits(self) -> tuple[float, bool, float]:
        """The last arguments of a case's round: it may compile for each shape."""
        exercise, slowness = self.exercise, self.bench.machine.slowness
        run_s = slowness * exercise.run_limit_s(self.bench.device)
        return run_s, exercise.head_start, slowness * exercise.time_limit_s

    @property
    def _all_wanted(self) -> list[Case]:
        return [*self.all_cases, *(self.exercise.timed_cases if self.timed else ())]

    def run(self, upcoming: Sequence[tuple[str, Exercise]] = ()) -> Failure | None:
        """Grade the submission. Return the failure that ended the grading, or None. A wrong answer is not a failure."""
        self._of_source = rules.of_source(self.source, self.exercise)
        self.findings += self._of_source
        self._must_fit()
        self.bench.buffers.warm(self._all_wanted)
        if self.timed:
            self.timer.know_baselines()
        building = "building the extension" if self.exercise.backend == "cuda" else "importing the cell"
        self.progress(building, 0, len(self.all_cases))
        self.bench.pool.expect([(self.source, self.exercise), *upcoming])
        failure = self._attempt()
        others = (self._beside or self.bench.pool.busy) and self._left_s > 0
        if others and (self._mismeasured() or (failure is not None and _others_may_be_why(failure))):
            self.bench.pool.reset()
            self._forget()
            failure = self._attempt()
        if failure is None:
            self._look_for_what_is_left()
            self._look_for_variables_without_a_value()
        if failure is None and self.timer.disputed and all(case.passed for case in self.cases):
            failure = self._afresh()  # only if all is right: a wrong answer gets no second draw
        return failure

    def _mismeasured(self) -> bool:
        """Whether a case that asks for a measured time is wrong: other work on the GPU may have changed the time."""
        measured = {case.name for case in self.all_cases if case.measured}
        return any(case.mismatch is not None and case.name in measured for case in self.cases)

    def _repeat(self) -> None:
        """Leave at least half of the time limit for a repeat, but only once per grading."""
        if not self._repeats:
            self._left_s, self._repeats = max(self._left_s, self.whole_s / 2), True

    def _afresh(self) -> Failure | None:
        """Grade again in a new process, with no other submission alive. This result counts."""
        self._repeat()
        self.bench.pool.be_still()
        self._forget()
        return self._attempt()

    def _forget(self) -> None:
        self.cases.clear()
        self.findings = list(self._of_source)
        self.uncompiled, self.causes, self.breakdown = "", (), None
        self.timer.forget()

    def _must_fit(self) -> None:
        """Raise if a case does not fit the memory that is free with no other submission alive.

        TooLittle means that a judge with smaller arenas may have room; MachineLacks means that none does.
        """
        buffers, wanted = self.bench.buffers, self._all_wanted

        def too_large() -> list[Case]:
            return [case for case in wanted if not buffers.fits(case)]

        if not too_large():
            return
        self.bench.pool.evict()
        buffers.rest()
        if stays(lambda: bool(too_large())):
            case, *_ = too_large() or wanted
            said = f"The case {case.name} needs more memory than this machine has free."
            kind = TooLittle if all(buffers.capacity(case) for case in wanted) else MachineLacks
            raise kind(f"{said} If other notebooks use the GPU, close them and try again.")

    def _attempt(self) -> Failure | None:
        """Grade in one worker. If its own streams start late, grade again in a worker whose streams share a queue.

        A single queue hides a missing wait between streams, so it is never the only attempt.
        """
        with contextlib.suppress(HeldUp):
            return self._in_a_worker()
        self._repeat()
        self._forget()
        return self._in_a_worker()

    def _in_a_worker(self) -> Failure | None:
        loaded = self.bench.take(self.source, self.exercise, self._left_s, self.timer.one_queue)
        self._left_s -= loaded.waited_s
        self._beside = loaded.beside
        try:
            failure = self._run(loaded)
        except RuntimeError as error:
            if not out_of_memory(error):
                raise
            loaded.worker.close()
            # The frames hold tensors, whose memory would look like someone else's.
            traceback.clear_frames(error.__traceback__)
            if stays(self.bench.buffers.short):  # still short without the submission: someone else holds the memory
                raise
            self._must_fit()
            failure = Failure("limit", "It holds so much of the GPU's memory that the grader has too little left.")
        finally:
            loaded.worker.close()
            self._left_s = min(self._left_s, loaded.worker.left_s)
            self.log = loaded.worker.log
        self.findings += self.timer.settle()
        return failure

    def _run(self, loaded: Loaded) -> Failure | None:
        """Check the cases, time the submission, then profile its kernels."""
        worker = loaded.worker
        if loaded.failure is not None:
            return loaded.failure
        simulated = self.bench.device == "simulator"
        try:
            worker.in_turn(self._left_s, self.whole_s)
            if simulated and self.exercise.backend == "triton" and "triton" in self.source:
                worker.compile(self.all_cases, [*self.exercise.cases, *self.exercise.timed_cases])
            worker.map(self.bench.buffers)
        except WorkerFailed as failed:
            return failed.failure
        for number, case in enumerate(self.all_cases):
            if case.if_right and not all(each.passed for each in self.cases):
                continue
            self.progress(f"checking {case.name}", number, len(self.all_cases))
            result = self._case(worker, case)
            if result.failure is not None and result.failure.kind == "not_simulated":
                right = all(case.passed for case in self.cases)
                return result.failure if right else None  # a wrong case is wrong, whatever the next ones need
            self.cases.append(result)
            if result.failure is not None:
                return (self._refused(worker) if simulated else None) or result.failure
        right = all(case.passed for case in self.cases)
        if simulated and right:
            return self._called_again(worker) or (
                self._compiled(worker) if self.cases[-1].passed else self._refused(worker)
            )
        if simulated:
            return self._refused(worker)
        if right and not (self.timed and self.exercise.timed_cases):
            return self._called_again(worker)
        if not right:
            return None
        try:
            self.timer.time_gates(worker)
        except WorkerFailed as failed:
            return failed.failure
        except TimedWrong as wrong:
            self.cases.append(CaseResult(f"{wrong.case}, while timed", False, mismatch=self._hinted(wrong.mismatch)))
            return None
        if self.bench.pool.profiled:
            self._look_at_kernels(worker)
        if any(gate.outcome == "failed" for gate in self.timer.gates(judged=True)):
            self._say_why(worker)
        return self.timer.implausible()

    def _called_again(self, worker: Worker) -> Failure | None:
        """Repeat a case on other inputs, and add it to the cases if it is wrong. Each timed launch does so, too.

        It is the largest of the cases that need few operations, so that the choice is the same on every machine.
        """
        work = {each.name: self.exercise.operations(each) for each in self.all_cases}
        few = max(_AGAIN_SHARE * sum(work.values()), min(work.values(), default=0))
        small = [each for each in self.all_cases if each.tries == 1 and not each.measured and work[each.name] <= few]
        if not small:
            return None
        case = max(small, key=lambda each: sum(math.prod(array.shape) for array in each.arrays))
        self.progress(f"calling it again for {case.name}", len(self.all_cases), len(self.all_cases))
        result = self._try(worker, case)
        if not result.passed:
            self.cases.append(replace(result, name=f"{case.name}{_AGAIN}"))
        return result.failure

    def _compiled(self, worker: Worker) -> Failure | None:
        """Return the failure of a submission that runs in the simulator and that a GPU's compiler refuses."""
        self.progress("compiling for a GPU", len(self.all_cases), len(self.all_cases))
        try:
            self.uncompiled, facts = worker.compiled(self.bench.machine.slowness * _COMPILE_LIMIT_S)
        except WorkerFailed as failed:
            how = "does not compile for" if failed.failure.kind == "compile" else "fails on"
            return replace(failed.failure, message=f"Runs in the simulator, but {how} a GPU: {failed.failure.message}")
        missing = self.exercise.of_compiled(facts) if self.exercise.of_compiled and not self.uncompiled else ""
        return Failure("not_asked", missing) if missing else None

    def _refused(self, worker: Worker) -> Failure | None:
        """Return the error of a GPU's compiler for a wrong submission in CUDA C++: nothing else matters then."""
        if self.exercise.backend not in ("cuda", "cupy") or worker.closed:
            return None
        try:
            worker.compiled(self.bench.machine.slowness * _COMPILE_LIMIT_S)
        except WorkerFailed as failed:  # or it has crashed
            if failed.failure.kind == "compile":
                return replace(failed.failure, message=f"Does not compile for a GPU: {failed.failure.message}")
        return None

    def _look_at_kernels(self, worker: Worker) -> None:
        self.progress("looking at the kernels that ran", len(self.all_cases), len(self.all_cases))
        with contextlib.suppress(WorkerFailed):  # it is graded already: a failure under the profiler does not count
            self.findings += rules.of_kernels(worker.kernels("submission", _KERNELS_LIMIT_S), self.exercise)

    def _say_why(self, worker: Worker) -> None:
        """Find the causes that one more call and the source tell, and divide the time: the simulator adds to both."""
        case, claims = self.exercise.timed_cases[-1], inquiry.nothing(self.bench)  # its launches are planned
        if self.exercise.backend != "torch":  # a watched call may compile a graph again
            with contextlib.suppress(WorkerFailed):
                claim = worker.evidence("submission", self._limits[0])
                claims["runs"].append({"case": case.name, "scale": self.timer.scales[case.name], "claim": claim})
        timings = self.timer.timings(self.exercise.timed_cases)
        found, most = Evidence.of_claims(self.exercise, claims), headroom_of(timings)
        self.causes = causes(self.exercise, self.source, found, headroom=most)
        own = timed(self.exercise, timings, self.bench.environment(None))
        self.breakdown = breakdown(self.exercise, self.source, own)

    def _case(self, worker: Worker, case: Case) -> CaseResult:
        for _ in range(case.tries):
            result = self._try(worker, case)
            if result.mismatch is None:
                break
        return result

    def _try(self, worker: Worker, case: Case) -> CaseResult:
        buffers = self.bench.buffers
        layout = buffers.lay(case)
        buffers.fill(layout, self.exercise.draw)
        expected = None
        if case.measured:
            with stopped(worker):
                expected = self.bench.measured(layout, self.exercise)
        buffers.poison(layout)
        try:
            worker.plan(layout)
            with self.bench.pool.still() if case.measured else contextlib.nullcontext():
                one = worker.round("submission", buffers, *self._limits)
            mismatch = buffers.check(layout, self.exercise, expected)
            self.findings += [each for each in one.findings if each not in self.findings]
            if mismatch is None:
                one.must_be_unchanged()
            integers = not any("float" in each.dtype for each in case.outputs)
            if one.failures and (mismatch is None or _races(one.failures[0], mismatch, integers)):
                return CaseResult(case.name, False, failure=one.failures[0])
        except WorkerFailed as failed:
            return CaseResult(case.name, False, failure=failed.failure)
        if mismatch and buffers.unwritten(layout) and any(stub in self.source for stub in _STUBS):
            return CaseResult(case.name, False, failure=Failure("not_written", "The exercise is not written yet."))
        if mismatch and expected is None and self._adds_to_nan(worker, layout, mismatch):
            said = _ADDED_TO_NAN.format(mismatch.output)
            mismatch = replace(mismatch, suspect=said, got="nan", unwritten=0, not_finite=mismatch.wrong)
        elif mismatch and one.cause and 0 < mismatch.wrong == mismatch.not_finite and not mismatch.suspect:
            mismatch = replace(mismatch, suspect=one.cause)
        elif mismatch and mismatch.wrong and one.overflow:  # seen, where a suspect is guessed from the values
            mismatch = replace(mismatch, suspect=one.overflow)
        return CaseResult(case.name, mismatch is None, mismatch=self._hinted(mismatch) if mismatch else None)

    def _adds_to_nan(self, worker: Worker, layout: Layout, mismatch: Mismatch) -> bool:
        """Whether a case without one finite wrong value is right if the outputs begin as 0: it is run again so."""
        finite = mismatch.wrong - mismatch.unwritten - mismatch.not_finite
        if self._adds is False or finite or not mismatch.wrong or mismatch.outside:
            return False
        buffers = self.bench.buffers
        buffers.poison(layout)
        buffers.zero(layout)
        self._adds = False
        with contextlib.suppress(WorkerFailed):
            worker.round("submission", buffers, *self._limits)
            self._adds = buffers.check(layout, self.exercise) is None
        return self._adds

    def _look_for_what_is_left(self) -> None:
        """Say that an earlier call left something behind, if other workers show it for the first wrong case.

        Without that, a case that was called again is wrong for another reason, and takes the place of the first call.
        """
        named = {case.name: case for case in self.all_cases}
        number = next((at for at, each in enumerate(self.cases) if not each.passed), -1)
        case = named.get(self.cases[number].name.removesuffix(_AGAIN)) if number >= 0 else None
        found = self.cases[number].mismatch if number >= 0 else None
        if case is None or found is None:
            return
        again = self.cases[number].name.endswith(_AGAIN)
        if self.bench.device == "cuda" and not again:
            return
        earlier = [named[each.name] for each in self.cases[:number] if named[each.name].arrays == case.arrays]
        if earlier and self._is_left(case, earlier):
            self.cases[number] = replace(self.cases[number], mismatch=replace(found, suspect=_LEFT))
        elif again:
            self.cases[self.all_cases.index(case)] = replace(self.cases.pop(number), name=case.name)

    def _is_left(self, case: Case, earlier: Sequence[Case]) -> bool:
        """Whether the case, in other workers, is right in each first call, and wrong in each call after `earlier`.

        Each is tried more than once: the result of a kernel may depend on chance, or on its inputs.
        """
        with contextlib.suppress(WorkerFailed):
            for _ in range(_TRIES):
                with self._another_worker() as worker:
                    if not self._try(worker, case).passed:
                        return False
                    for each in earlier:
                        self._try(worker, each)
                    if self._try(worker, case).mismatch is None:
                        return False
            return True
        return False

    @contextlib.contextmanager
    def _another_worker(self, zeroed: bool = False) -> Iterator[Worker]:
        """A worker that has the submission and called nothing yet. WorkerFailed: it has no time left, for example."""
        exercise = self.exercise
        with contextlib.closing(self.bench.pool.fresh()) as worker:
            worker.in_turn(self._left_s, self.whole_s)
            try:
                limit_s = self._limits[-1]
                worker.load("submission", self.source, exercise.entry, limit_s, exercise.harness, zeroed=zeroed)
                worker.map(self.bench.buffers)
                yield worker
            finally:
                self._left_s = min(self._left_s, worker.left_s)

    def _look_for_variables_without_a_value(self) -> None:
        """Name such variables, if the first wrong case is right when they begin as 0, in another worker."""
        exercise, number = self.exercise, next((at for at, each in enumerate(self.cases) if not each.passed), -1)
        found = self.cases[number].mismatch if number >= 0 else None
        if found is None or self.bench.device == "cuda" or exercise.backend not in ("cuda", "cupy") or self._adds:
            return
        if found.suspect == _LEFT or number >= len(self.all_cases):
            return
        if found.unwritten == found.wrong or not (found.not_finite or (found.worst_error or 0.0) > _LARGE):
            return
        named = {case.name: case for case in self.all_cases}
        *earlier, case = (named[each.name] for each in self.cases[: number + 1])  # what they leave behind may be wrong
        with contextlib.suppress(WorkerFailed), self._another_worker(zeroed=True) as worker:
            for each in earlier:
                self._try(worker, each)
            if self._try(worker, case).passed:
                self.cases[number] = replace(self.cases[number], mismatch=replace(found, suspect=_WITHOUT_A_VALUE))

    def _hinted(self, mismatch: Mismatch) -> Mismatch:
        """Add a hint from the source if the output suggests none."""
        if mismatch.suspect or not self.exercise.head_start or self.bench.device != "cuda":
            return mismatch
        return replace(mismatch, suspect=waits_for_nobody(self.source))

    def verdict(self, failure: Failure | None) -> Verdict:
        """Return the verdict by the cases and the timing."""
        exercise, on_gpu = self.exercise, self.bench.device == "cuda"
        correct = failure is None and bool(self.cases) and all(case.passed for case in self.cases)
        gates = self.timer.gates(judged=correct)
        status: Status = "passed" if correct and all(gate.outcome != "failed" for gate in gates) else "failed"
        if failure is not None and failure.kind == "unusable":
            status = "unusable"
        not_judged = failure is not None and failure.kind == "not_simulated"
        if not_judged:
            status = "not_judged"
        reachable = exercise.max_points if on_gpu else 0.0 if not_judged else exercise.correctness_points
        environment = self.bench.environment(self.timer.record)
        lacks = score.lacks(exercise, gates, self.bench.machine)
        done = {case.name for case in self.cases}
        not_run = [CaseResult(case.name, False) for case in self.all_cases if case.name not in done]
        failures = [failure, *(case.failure for case in self.cases)]
        # A stub, or its text says so, perhaps falsely.
        stub = any(each is not None and each.kind == "not_written" for each in failures)
        kept = correct or (failure is not None and failure.kind == "implausible")
        return Verdict(
            exercise=exercise.id,
            title=exercise.title,
            status=status,
            points=(exercise.correctness_points if correct else 0.0) + sum(gate.points for gate in gates),
            max_points=exercise.max_points,
            reachable_points=reachable,
            submission_sha256="",
            environment=replace(
                environment,
                notes=(*environment.notes, *lacks),
                uncompiled=self.uncompiled,
                practice=self.timer.practised,
                changed_by=exercise.changed_by,
            ),
            cases=(*uncontradicted(self.cases, exercise.suspects), *not_run),
            gates=gates,
            timings=self.timer.timings(exercise.timed_cases) if kept else (),
            failure=failure,
            findings=() if stub else rules.without_doubtful(self.findings, failures),
            clock=self.timer.clock(),
            causes=self.causes if correct else (),
            breakdown=self.breakdown if correct else None,
            log=self.log[:_LOG_CHARACTERS],
            grader=__version__,
        )


def _races(failure: Failure, mismatch: Mismatch, integers: bool) -> bool:
    """Whether a race is the likely cause of a wrong output: nothing in the output tells another.

    An access outside of a tensor that the submission has made is always the cause, and one of a kernel whose outputs
    are `integers`, because none of them is NaN.
    """
    told = mismatch.suspect or mismatch.unwritten or mismatch.outside
    if failure.kind == "illegal_access":
        stores = (integers or _STORES.search(failure.message)) and not told
        return bool(stores or _OF_SCRATCH.search(failure.message))
    return failure.kind == "fails_on_gpu" and not told


def _others_may_be_why(failure: Failure) -> bool:
    """Whether submissions loading in the background could have caused this, by their use of memory and time."""
    said = f"{failure.message} {failure.detail}"
    short = out_of_memory(failure.detail) or any(words in said for words in _SHORT)
    return failure.kind in ("timeout", "limit", "crash") or short
