"""The pool starts workers before they are needed: fresh ones, and some that load the submissions graded next.

Imports and compilers run in parallel. While the clock runs, all workers are stopped: compilers would lengthen a
round by 0.1 ms, and creating a CUDA context is work on the GPU.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace

from grader.exercise import Case, Exercise
from grader.judge.gpu.ceilings import whole_limit_s
from grader.judge.process.worker import START_LIMIT_S, Worker, WorkerFailed
from grader.judge.sandbox import prebuilt
from grader.judge.screening import refuse
from grader.verdict import Failure

_MOST_AHEAD = 8
_CORES = 6  # at least, to load ahead: arbiter and worker spin on one each
_CALM_S = 1.0  # between the end of a submission and a calibration
_REHEARSAL_S = {"triton": 10.0, "cuda": 120.0}  # longest rehearsal by backend
_FRESH = 2  # one worker for the submission, one for the baselines
_FRESH_IN_CLASS = 3  # one more to reload a submission whose worker had to end
_GPU_BYTES_AHEAD = 2 << 30  # free memory per worker ahead: a context, and a submission's allocations at import


@dataclass(frozen=True)
class Loaded:
    """A worker that has loaded a submission, or failed to. Its GPU buffers are not mapped yet."""

    worker: Worker
    failure: Failure | None
    beside: bool  # loaded while other submissions used the machine
    waited_s: float = 0.0  # for loading, since its turn came


class Pool:
    """Keeps workers ready."""

    def __init__(self, device: str, sandbox: bool | None = None, free_bytes: int | None = None) -> None:
        self.device, self.sandbox = device, sandbox
        self.quiet = threading.RLock()  # held while something is timed
        cores = len(os.sched_getaffinity(0))  # the ones that a batch system leaves us
        room = cores // 2 if free_bytes is None else min(cores // 2, free_bytes // _GPU_BYTES_AHEAD)
        self._ahead = max(1, min(_MOST_AHEAD, room)) if cores >= _CORES else 1
        self._threads = ThreadPoolExecutor(2 * self._ahead + 1, "pool")
        self._starting = threading.BoundedSemaphore(max(1, cores // 2))  # imports and compilers keep a core busy
        self._fresh: dict[bool, deque[Future[Worker]]] = {False: deque(), True: deque()}  # by `profiled`
        self._expected: dict[tuple[str, str], _Ahead] = {}
        self._workers: weakref.WeakSet[Worker] = weakref.WeakSet()
        self._guard = threading.Lock()
        self._still = threading.Lock()  # held within `still()`, and while a worker is created
        self.slowness = 1.0  # the factor of all time limits on this host
        self._profiled = False
        self._in_hand: Worker | None = None  # the last one taken
        self._used = False  # whether a submission has run
        self._closing = False
        self._at_once = cores >= _CORES  # otherwise a start would take cores from the timing
        self.refill(_FRESH if device == "cuda" else 1)

    @contextlib.contextmanager
    def still(self) -> Iterator[None]:
        """Within this context only workers in turn run, and none is started. Not reentrant."""
        with self._still, self.quiet:
            for worker in (others := self._made()):
                worker.hold()
            try:
                yield
            finally:
                for worker in others:
                    worker.release()

    @property
    def profiled(self) -> bool:
        """Whether workers have the profiler ready: see `grader.worker.gpu_start.warm`."""
        return self._profiled

    @profiled.setter
    def profiled(self, profiled: bool) -> None:
        if self._profiled and not profiled:
            self.evict()  # what such a worker has loaded ahead must not be timed in it
        self._profiled = profiled

    @property
    def busy(self) -> bool:
        """Whether other submissions than the current one are loading or loaded."""
        return bool(self._expected)

    @property
    def empty(self) -> bool:
        """Whether no submission is alive."""
        return not self._expected and (self._in_hand is None or self._in_hand.closed)

    def expect(
        self, jobs: Sequence[tuple[str, Exercise]], cases: Callable[[Exercise], Sequence[Case]] | None = None
    ) -> None:
        """Start to load the next submissions in order, and end the ones that are no longer expected.

        On a GPU, the kernels of those that follow the first are compiled for these `cases`, by default for all.
        """
        wanted = {(source, exercise.id): exercise for source, exercise in jobs[: self._ahead]}
        for key in [key for key in self._expected if key not in wanted]:
            self._expected.pop(key).end()
        for number, (key, exercise) in enumerate(wanted.items()):
            if key not in self._expected and refuse(key[0], exercise) is None:
                self._used = True
                later = number > 0 and self.device == "cuda"
                limit_s = whole_limit_s(exercise, self.device, self.slowness)
                job = functools.partial(
                    _load,
                    source=key[0],
                    exercise=exercise,
                    limit_s=limit_s,
                    beside=len(wanted) > 1,
                    rehearsed=(cases or _all_cases)(exercise) if later else (),
                )
                self._expected[key] = _Ahead(self._threads, self._pop(), job)

    def take(self, source: str, exercise: Exercise, left_s: float = math.inf, one_queue: bool = False) -> Loaded:
        """Return a worker that has loaded this submission, ahead of its turn or now within `left_s`.

        `one_queue` starts a new worker, whose streams share a hardware queue. WorkerFailed: no worker starts here.
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
            worker = self._start(self.profiled, one_queue=True) if one_queue else self._pop().result()
            begun = time.monotonic()
            loaded = _load(worker, source, exercise, min(left_s, self.slowness * exercise.time_limit_s), beside=False)
        loaded = replace(loaded, waited_s=time.monotonic() - begun)
        self._in_hand = loaded.worker
        if loaded.failure is None:
            loaded.worker.thaw()
        return loaded

    def fresh(self) -> Worker:
        """Return a worker that has run no submission. WorkerFailed: no worker starts on this machine."""
        worker = self._pop().result()
        worker.in_turn()
        return worker

    def refill(self, count: int = 1) -> None:
        """Start fresh workers until there are `count`."""
        ready = self._fresh[self.profiled]
        while len(ready) < count:
            ready.append(self._begin())

    def trim(self) -> None:
        """End the fresh workers that only a whole class needs."""
        for ready in self._fresh.values():
            while len(ready) > _FRESH:
                ready.pop().add_done_callback(_close)

    def evict(self) -> None:
        """End the workers that load submissions ahead; these are loaded again in their turn."""
        for ahead in self._expected.values():
            ahead.end()
        self._expected.clear()

    def calm(self) -> bool:
        """End the workers that load ahead, and wait for the machine to settle if a submission has run.

        Return False if the current submission is still alive.
        """
        self.evict()
        if self._used:
            time.sleep(_CALM_S)
            self._used = not self.empty
        return self.empty

    def be_still(self) -> None:
        """End the workers that load ahead and wait for the starting ones: both are noise to the clock."""
        starting = [*self._every_fresh(), *(ahead.starting for ahead in self._expected.values())]
        self.evict()
        wait(starting, timeout=START_LIMIT_S)

    def reset(self) -> None:
        """End all workers but the current one, also fresh ones: they started while others ran."""
        self.evict()
        for starting in self._every_fresh():
            starting.add_done_callback(_close)
        self._forget_fresh()

    def close(self) -> None:
        """End every worker."""
        self._closing = True
        for worker in self._made():
            worker.kill()  # ends the waiting in other threads
        self._threads.shutdown(cancel_futures=True)
        for worker in self._made():
            worker.close()
        self._forget_fresh()
        self._expected.clear()

    def _made(self) -> list[Worker]:
        with self._guard:
            return list(self._workers)

    def _pop(self) -> Future[Worker]:
        """Return a fresh worker. If the profiler is needed and no worker has it ready, another one starts it later."""
        ready = self._fresh[self.profiled] or self._fresh[False]
        return ready.popleft() if ready else self._begin()

    def _begin(self) -> Future[Worker]:
        return self._threads.submit(self._start, self.profiled)

    def _every_fresh(self) -> list[Future[Worker]]:
        return [starting for ready in self._fresh.values() for starting in ready]

    def _forget_fresh(self) -> None:
        for ready in self._fresh.values():
            ready.clear()

    def _start(self, profiled: bool, one_queue: bool = False) -> Worker:
        with self._starting:
            return self._started(profiled, one_queue)

    def _started(self, profiled: bool, one_queue: bool) -> Worker:
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
            worker.warm_up(profiled)
        except WorkerFailed:
            worker.close()
            raise
        return worker


class _Ahead:
    """A submission that is being loaded ahead of its turn."""

    def __init__(self, threads: ThreadPoolExecutor, starting: Future[Worker], load: Callable[[Worker], Loaded]) -> None:
        self.starting, self._load, self._ended = starting, load, False
        self.loading = threads.submit(self._loaded)

    def end(self) -> None:
        """End its worker, now or as soon as it has started."""
        self._ended = True
        if self.starting.done() and self.starting.exception() is None:
            self.starting.result().kill()
        self.loading.add_done_callback(_close)

    def _loaded(self) -> Loaded:
        worker = self.starting.result()
        if self._ended:
            worker.close()
            return Loaded(worker, Failure("crash", "The judge ended it before it was loaded."), beside=True)
        return self._load(worker)


def _all_cases(exercise: Exercise) -> Sequence[Case]:
    return [*exercise.cases, *exercise.timed_cases]


def _load(
    worker: Worker,
    source: str,
    exercise: Exercise,
    limit_s: float,
    beside: bool,
    rehearsed: Sequence[Case] = (),
) -> Loaded:
    try:
        worker.greet()
    except WorkerFailed as failed:  # not the submission's fault: the worker does not have it yet
        worker.close()
        return Loaded(worker, failed.failure, beside=True)
    if worker.device == "simulator":
        prebuilt.build_headers_for(source)
    begun = time.monotonic()
    try:
        worker.load("submission", source, exercise.entry, limit_s, exercise.harness)
        if rehearsed and exercise.backend in _REHEARSAL_S:
            left_s = limit_s - (time.monotonic() - begun)
            worker.rehearse("submission", rehearsed, min(left_s, _REHEARSAL_S[exercise.backend]))
        worker.freeze()  # stops the processes that the import started, too
    except BaseException as error:
        worker.close()
        if isinstance(error, WorkerFailed):
            return Loaded(worker, error.failure, beside)
        raise
    return Loaded(worker, None, beside)


def _close(future: Future[Loaded] | Future[Worker]) -> None:
    if not future.cancelled() and future.exception() is None:
        found = future.result()
        (found.worker if isinstance(found, Loaded) else found).close()
