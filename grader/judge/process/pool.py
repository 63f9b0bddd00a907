"""Workers ahead of need: fresh ones with their imports done, and some that already load what will be graded next.

Loading (nvcc, ninja, imports) goes on in parallel, and so does what is compiled when a function is called. While
something is timed, all of them stand still: what compilers take of the processor makes a round longer by a tenth of a
millisecond, and the making of contexts is work on the GPU.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace

from grader.exercise import Exercise
from grader.judge.process.worker import START_LIMIT_S, Worker, WorkerFailed
from grader.judge.screening import refuse
from grader.judge.timing.host_speed import whole_limit_s
from grader.verdict import Failure

_MOST_AHEAD = 8
_CORES = 6  # arbiter and worker spin on one each
_CALM_S = 1.0  # between the end of somebody's code and a calibration
_REHEARSAL_S = {"triton": 10.0, "cuda": 120.0}  # by backend, at most; a submission whose turn comes waits for the rest
_FRESH = 2  # workers ready for one submission: its own, and one for the baselines
_FRESH_IN_CLASS = 3  # what is loaded ahead may have to end, and is loaded again at once
_GPU_BYTES_AHEAD = 2 << 30  # of free memory for each worker ahead: a context, and what a submission makes at import


@dataclass(frozen=True)
class Loaded:
    """A worker that has loaded a submission, or failed to; its GPU buffers are not mapped yet."""

    worker: Worker
    failure: Failure | None
    beside: bool  # others, which may have taken of its share of the machine
    waited_s: float = 0.0  # for it to be loaded, once its turn had come


class Pool:
    """Keeps workers ahead."""

    def __init__(self, device: str, sandbox: bool | None = None, free_bytes: int | None = None) -> None:
        self.device, self.sandbox = device, sandbox
        self.quiet = threading.RLock()  # held while something is timed
        cores = len(os.sched_getaffinity(0))  # those that a batch system leaves us
        room = cores // 2 if free_bytes is None else min(cores // 2, free_bytes // _GPU_BYTES_AHEAD)
        self._ahead = max(1, min(_MOST_AHEAD, room)) if cores >= _CORES else 1
        self._threads = ThreadPoolExecutor(2 * self._ahead + 1, "pool")
        self._starting = threading.BoundedSemaphore(max(1, cores // 2))  # imports and compilers are work for a core
        self._fresh: deque[Future[Worker]] = deque()
        self._expected: dict[tuple[str, str], _Ahead] = {}
        self._workers: weakref.WeakSet[Worker] = weakref.WeakSet()
        self._guard = threading.Lock()
        self._still = threading.Lock()  # held meanwhile, and while a worker is made
        self.slowness = 1.0  # of this host: the factor of all time limits
        self.profiled = False  # whether workers are started with the profiler ready: see `grader.worker.gpu_start.warm`
        self._in_hand: Worker | None = None  # the last that was taken
        self._used = False  # whether somebody's code has run
        self._closing = False
        self._at_once = cores >= _CORES  # else a start would take the cores from what is timed
        self.refill(_FRESH if device == "cuda" else 1)

    @contextlib.contextmanager
    def still(self) -> Iterator[None]:
        """Meanwhile only those in turn run, and none is started. It is not entered within itself."""
        with self._still, self.quiet:
            for worker in (others := self._made()):
                worker.hold()
            try:
                yield
            finally:
                for worker in others:
                    worker.release()

    @property
    def busy(self) -> bool:
        """Whether workers other than the one in hand run, or have run, somebody's code."""
        return bool(self._expected)

    @property
    def empty(self) -> bool:
        """Whether nobody's code is alive: neither ahead nor in hand."""
        return not self._expected and (self._in_hand is None or self._in_hand.closed)

    def expect(self, jobs: Sequence[tuple[str, Exercise]]) -> None:
        """Begins to load what will be asked for next, in order; what is no longer expected is let go."""
        wanted = {(source, exercise.id): exercise for source, exercise in jobs[: self._ahead]}
        for key in [key for key in self._expected if key not in wanted]:
            self._expected.pop(key).end()
        for number, (key, exercise) in enumerate(wanted.items()):
            if key not in self._expected and refuse(key[0], exercise) is None:
                self._used = True
                later = number > 0 and self.device == "cuda"
                limit_s = whole_limit_s(exercise, self.device, self.slowness)
                self._expected[key] = _Ahead(
                    self._threads, self._pop(), key[0], exercise, limit_s, beside=len(wanted) > 1, rehearsed=later
                )

    def take(self, source: str, exercise: Exercise, left_s: float = math.inf, one_queue: bool = False) -> Loaded:
        """A worker with this submission loaded: the one ahead where there is one. `left_s` is what a submission that is
        loaded now has for it. `one_queue`: a worker that is started now, whose streams share a queue.

        Raises:
            WorkerFailed: no worker comes up on this machine.
        """
        ahead = None if one_queue else self._expected.pop((source, exercise.id), None)
        self._used = True
        if self._at_once:
            self.refill(_FRESH_IN_CLASS if self._expected and self._ahead > 1 else 1)
        if ahead is not None:
            wait([ahead.starting])
            begun = time.monotonic()
            loaded = ahead.loading.result()
        else:
            worker = self._start(one_queue=True) if one_queue else self._pop().result()
            begun = time.monotonic()
            loaded = _load(worker, source, exercise, min(left_s, self.slowness * exercise.time_limit_s), beside=False)
        loaded = replace(loaded, waited_s=time.monotonic() - begun)
        self._in_hand = loaded.worker
        if loaded.failure is None:
            loaded.worker.thaw()
        return loaded

    def fresh(self) -> Worker:
        """A worker that has run nobody's code, its context made.

        Raises:
            WorkerFailed: no worker comes up on this machine.
        """
        worker = self._pop().result()
        worker.in_turn()
        return worker

    def refill(self, count: int = 1) -> None:
        """Starts fresh workers, unless there are as many."""
        while len(self._fresh) < count:
            self._fresh.append(self._threads.submit(self._start))

    def trim(self) -> None:
        """Ends fresh workers that only a class needs."""
        while len(self._fresh) > _FRESH:
            self._fresh.pop().add_done_callback(_end)

    def evict(self) -> None:
        """Ends the workers that have somebody's code; it is loaded again when its turn comes."""
        for ahead in self._expected.values():
            ahead.end()
        self._expected.clear()

    def calm(self) -> bool:
        """Ends the workers that have somebody's code, and waits for a while where anybody's has run: a GPU and a host
        are not what they were in the moment in which much has ended. False where the one in hand is still alive.
        """
        self.evict()
        if self._used:
            time.sleep(_CALM_S)
            self._used = not self.empty
        return self.empty

    def be_still(self) -> None:
        """Ends the workers that have somebody's code, and waits for those that start: what either takes of the host is
        noise in a clock.
        """
        starting = [*self._fresh, *(ahead.starting for ahead in self._expected.values())]
        self.evict()
        wait(starting, timeout=START_LIMIT_S)

    def reset(self) -> None:
        """Ends all workers but the one in hand, those too that have run nobody's code: they came up beside others."""
        self.evict()
        for starting in self._fresh:
            starting.add_done_callback(_end)
        self._fresh.clear()

    def close(self) -> None:
        """Ends every worker."""
        self._closing = True
        for worker in self._made():
            worker.kill()  # whoever waits for it stops waiting
        self._threads.shutdown(cancel_futures=True)
        for worker in self._made():
            worker.close()
        self._fresh.clear()
        self._expected.clear()

    def _made(self) -> list[Worker]:
        with self._guard:
            return list(self._workers)

    def _pop(self) -> Future[Worker]:
        return self._fresh.popleft() if self._fresh else self._threads.submit(self._start)

    def _start(self, one_queue: bool = False) -> Worker:
        with self._starting:
            return self._started(one_queue)

    def _started(self, one_queue: bool) -> Worker:
        with self._still:
            worker = Worker(self.device, self.sandbox, self.quiet)
            with self._guard:
                self._workers.add(worker)
        if self._closing:
            worker.kill()
        try:
            worker.await_imports()
            with self.quiet:
                worker.start_up(one_queue)
            worker.warm_up(self.profiled)
        except WorkerFailed:
            worker.close()
            raise
        return worker


class _Ahead:
    """A submission that is being loaded ahead of its turn."""

    def __init__(
        self, threads: ThreadPoolExecutor, starting: Future[Worker], source: str, exercise: Exercise, limit_s: float,
        *, beside: bool, rehearsed: bool,
    ) -> None:  # fmt: skip
        self.starting, self._source, self._exercise, self._beside = starting, source, exercise, beside
        self._limit_s, self._rehearsed = limit_s, rehearsed
        self._ended = False
        self.loading = threads.submit(self._load)

    def end(self) -> None:
        """Ends its worker, now or as soon as it has started."""
        self._ended = True
        if self.starting.done() and self.starting.exception() is None:
            self.starting.result().kill()
        self.loading.add_done_callback(_close)

    def _load(self) -> Loaded:
        worker = self.starting.result()
        if self._ended:
            worker.close()
            return Loaded(worker, Failure("crash", "It was ended before it was loaded."), self._beside)
        return _load(worker, self._source, self._exercise, self._limit_s, self._beside, self._rehearsed)


def _load(
    worker: Worker, source: str, exercise: Exercise, limit_s: float, beside: bool, rehearsed: bool = False
) -> Loaded:
    try:
        worker.greet()
    except WorkerFailed as failed:  # before it was told of the submission: whatever that was, others are why
        worker.close()
        return Loaded(worker, failed.failure, beside=True)
    begun = time.monotonic()
    try:
        worker.load("submission", source, exercise.entry, limit_s, exercise.harness)
        if rehearsed and exercise.backend in _REHEARSAL_S:
            cases = [*exercise.cases, *exercise.timed_cases]
            left_s = limit_s - (time.monotonic() - begun)
            worker.rehearse("submission", cases, min(left_s, _REHEARSAL_S[exercise.backend]))
        worker.freeze()  # what it started while it was imported waits, too
    except WorkerFailed as failed:
        worker.close()
        return Loaded(worker, failed.failure, beside)
    except BaseException:
        worker.close()
        raise
    return Loaded(worker, None, beside)


def _close(loading: Future[Loaded]) -> None:
    if not loading.cancelled() and loading.exception() is None:
        loading.result().worker.close()


def _end(starting: Future[Worker]) -> None:
    if not starting.cancelled() and starting.exception() is None:
        starting.result().close()
