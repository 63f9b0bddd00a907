"""One trial: every peer runs once over the same fresh inputs, and what each launch took is read off the clock."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from grader.exercise import Exercise
from grader.judge.checking.buffers import Desk, Spread
from grader.judge.process.worker import FILL, Round, Worker, WorkerFailed
from grader.judge.timing.clock import Clock, Excess
from grader.judge.timing.clock_choice import Reading
from grader.verdict import Mismatch

_HEAVY_S = 0.05  # of the judge's own work between two rounds: a product of large matrices warms a GPU up
_MOST_REST_S = 0.2
_SPELL_TRIALS = 3  # a spell of the host lasts for seconds, so for more than one of these


class BaselineFailed(Exception):
    """A baseline did not run: `args` are its name and what happened."""


class HeldUp(Exception):
    """What a submission puts on streams of its own begins late: it is to be timed in a worker of one queue."""


class TimedWrong(Exception):
    """An output of a timed launch is wrong."""

    def __init__(self, case: str, mismatch: Mismatch) -> None:
        super().__init__(case)
        self.case, self.mismatch = case, mismatch


def sample(
    desk: Desk, spread: Spread, exercise: Exercise, peers: dict[str, Worker], clock: Clock, limit_s: float,
    excesses: list[Excess], aside: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
    own_head_start: bool = True, checked: bool = True,
) -> dict[str, Reading]:  # fmt: skip
    """One trial: every peer once over the same fresh inputs. The submission comes first; its outputs are checked, and
    its processes stand still while the baselines run.

    `excesses` holds those of this case's earlier trials; this one's is added, and the drift that the last three show is
    taken off every reading. Where it is not `checked`, as in a warm-up, nobody looks at the submission's outputs.

    What the judge itself has the GPU do has ended before a round begins, and is done within `aside`. Where that was
    heavy, as the oracle of a product is, the GPU rests for a while: else it would slow whoever comes next.

    Without `own_head_start` the submission makes its calls after the flag was raised; what the host takes for that is
    not taken off, as who says that he cannot queue them may well have.

    Where no baseline's round is short enough to tell a drift, another one does, which only fills outputs.

    All but the judge's own work is taken off the time that the submission has: what it leaves on the GPU may hold up
    the baselines, and its processes may be slow to stop.

    Raises:
        WorkerFailed: the submission failed.
        BaselineFailed: a baseline did, which is no fault of the submission.
        TimedWrong: an output of the submission is wrong.
    """
    own, entered = peers.get("submission"), time.perf_counter()
    left_s = own.left_s if own is not None else 0.0
    begun = entered
    clock = clock if exercise.head_start else clock.of_the_host
    with aside():
        desk.deal(spread, exercise.draw)
    work_s = ours_s = time.perf_counter() - begun
    rounds: dict[str, Round] = {}
    strained = False
    for peer, worker in peers.items():
        if worker is own:
            _rest(exercise, work_s)
            desk.poison(spread)
            rounds[peer] = worker.round(peer, desk, limit_s, exercise.head_start and own_head_start)
            work_s = 0.0  # the GPU has rested since
            if not checked:
                continue
            begun = time.perf_counter()
            with aside():
                mismatch = desk.check(spread, exercise)
                desk.settle()
            if mismatch:
                raise TimedWrong(spread.case.name, mismatch)
            rounds[peer].must_be_unchanged()
            work_s = time.perf_counter() - begun
            ours_s += work_s
            continue
        with _still(own):
            _rest(exercise, work_s)
            rounds[peer], slow = _round_of_ours(worker, peer, desk, spread, clock, limit_s, exercise.head_start)
        work_s, strained = 0.0, strained or slow
    ours = [one for peer, one in rounds.items() if peers[peer] is not own]
    if own is not None and ours and not any(map(clock.tells, ours)):
        with _still(own):
            one, slow = _round_of_ours([*peers.values()][-1], FILL, desk, spread, clock, limit_s, exercise.head_start)
        ours, strained = [*ours, one], strained or slow
    if own is not None:
        own.left_s = left_s - (time.perf_counter() - entered - ours_s)
    excesses.append(clock.excess(ours, strained))
    drift = clock.drift(excesses[-_SPELL_TRIALS:])
    return {
        peer: clock.read(spread, one, drift if peers[peer] is own else drift.longer, trusted=peers[peer] is not own)
        for peer, one in rounds.items()
    }


@contextlib.contextmanager
def _still(own: Worker | None) -> Iterator[None]:
    if own is not None:
        own.freeze()
    try:
        yield
    finally:
        if own is not None:
            own.thaw()


def _round_of_ours(
    worker: Worker, name: str, desk: Desk, spread: Spread, clock: Clock, limit_s: float, head_start: bool
) -> tuple[Round, bool]:
    """The round, and whether the processor was slow before it and after."""
    try:
        desk.poison(spread)
        slow = clock.pace.is_strained()
        one = worker.round(name, desk, limit_s, head_start)
        return one, clock.pace.is_strained() and slow
    except WorkerFailed as failed:
        raise BaselineFailed(name, failed.failure.message) from None


def _rest(exercise: Exercise, work_s: float) -> None:
    """Lets the GPU cool down after heavy work of the judge's own, which took so long."""
    if exercise.limited_by == "arithmetic" and work_s > _HEAVY_S:
        time.sleep(min(work_s, _MOST_REST_S))


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Keeps this process's other threads from taking the interpreter from a spinning clock."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1.0)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
