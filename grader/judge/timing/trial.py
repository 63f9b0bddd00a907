"""One trial: every peer runs one round on the same fresh inputs, and the clock reads their times."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from grader.exercise import Exercise
from grader.judge.checking.buffers import Buffers, Layout
from grader.judge.process.worker import FILL, Round, Worker, WorkerFailed, stopped
from grader.judge.timing.clock import Clock, Excess
from grader.judge.timing.clock_choice import Reading
from grader.verdict import Mismatch

_HEAVY_S = 0.05  # of the judge's own work: a product of large matrices heats the GPU
_MOST_REST_S = 0.2
_SPELL_TRIALS = 3  # the host is slow for seconds at a time, so for more than one trial


class BaselineFailed(Exception):
    """A baseline failed: `args` are its name and the error."""


class HeldUp(Exception):
    """The submission's own streams start late: time it in a worker with one queue."""


class TimedWrong(Exception):
    """An output of a timed launch is wrong."""

    def __init__(self, case: str, mismatch: Mismatch) -> None:
        super().__init__(case)
        self.case, self.mismatch = case, mismatch


def sample(
    buffers: Buffers, layout: Layout, exercise: Exercise, peers: dict[str, Worker], clock: Clock, limit_s: float,
    excesses: list[Excess], aside: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
    own_head_start: bool = True, checked: bool = True,
) -> dict[str, Reading]:  # fmt: skip
    """Run every peer once on the same fresh inputs. The submission runs first, and is stopped during the baselines.

    `excesses` lists the case's earlier excesses; this trial's is added. The drift of the last three is subtracted.
    If no baseline's round is short enough to show the drift, an extra round that only fills the outputs does.

    The judge's own GPU work runs within `aside` and ends before a round. After heavy work, such as the oracle of a
    product, the GPU cools down. Only this work does not count against the submission's time limit, because leftover
    GPU work or slow processes of the submission can delay the baselines.

    Without `own_head_start` the submission makes its calls after the flag. The host's time for them counts, since
    a submission could pretend that it cannot queue them.

    Raises:
        WorkerFailed: the submission failed.
        BaselineFailed: a baseline failed, through no fault of the submission.
        TimedWrong: an output of the submission is wrong.
    """
    own, entered = peers.get("submission"), time.perf_counter()
    left_s = own.left_s if own is not None else 0.0
    clock = clock if exercise.head_start else clock.of_the_host
    with aside():
        buffers.fill(layout, exercise.draw)
    work_s = ours_s = time.perf_counter() - entered
    rounds: dict[str, Round] = {}
    strained = False
    for peer, worker in peers.items():
        if worker is own:
            _rest(exercise, work_s)
            buffers.poison(layout)
            rounds[peer] = worker.round(peer, buffers, limit_s, exercise.head_start and own_head_start)
            work_s = 0.0  # the GPU has rested since
            if not checked:
                continue
            begun = time.perf_counter()
            with aside():
                mismatch = buffers.check(layout, exercise)
                buffers.settle()
            if mismatch:
                raise TimedWrong(layout.case.name, mismatch)
            rounds[peer].must_be_unchanged()
            work_s = time.perf_counter() - begun
            ours_s += work_s
            continue
        with stopped(own):
            _rest(exercise, work_s)
            rounds[peer], slow = _round_of_ours(worker, peer, buffers, layout, clock, limit_s, exercise.head_start)
        work_s, strained = 0.0, strained or slow
    ours = [one for peer, one in rounds.items() if peers[peer] is not own]
    if own is not None and ours and not any(map(clock.tells, ours)):
        with stopped(own):
            one, slow = _round_of_ours(
                [*peers.values()][-1], FILL, buffers, layout, clock, limit_s, exercise.head_start
            )
        ours, strained = [*ours, one], strained or slow
    if own is not None:
        own.left_s = left_s - (time.perf_counter() - entered - ours_s)
    excesses.append(clock.excess(ours, strained))
    drift = clock.drift(excesses[-_SPELL_TRIALS:])
    return {
        peer: clock.read(layout, one, drift if peers[peer] is own else drift.longer, trusted=peers[peer] is not own)
        for peer, one in rounds.items()
    }


def _round_of_ours(
    worker: Worker, name: str, buffers: Buffers, layout: Layout, clock: Clock, limit_s: float, head_start: bool
) -> tuple[Round, bool]:
    """Run a trusted round. Return it, and whether the processor was slow before and after it."""
    try:
        buffers.poison(layout)
        slow = clock.host_speed.is_strained()
        one = worker.round(name, buffers, limit_s, head_start)
        return one, clock.host_speed.is_strained() and slow
    except WorkerFailed as failed:
        raise BaselineFailed(name, failed.failure.message) from None


def _rest(exercise: Exercise, work_s: float) -> None:
    """Let the GPU cool down after heavy work of the judge."""
    if exercise.limited_by == "arithmetic" and work_s > _HEAVY_S:
        time.sleep(min(work_s, _MOST_REST_S))


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Keep this process's other threads from taking the interpreter from a spinning clock."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1.0)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
