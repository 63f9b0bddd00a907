"""The arbiter's clock: rounds over fresh inputs, submission and baselines in turn, less what an empty round costs."""

from __future__ import annotations

from statistics import median

from grader.exercise import Array, Case, Exercise
from grader.judge.desk import Desk, Spread
from grader.judge.machine import Machine
from grader.judge.workers import Worker
from grader.verdict import Mismatch

__all__ = ["TimedWrong", "calibrate", "launches_for", "sample"]

_ROUND_S = 1e-3  # of launches in a round: against it the constant's spread of about 3 µs is 0.3 %
_L2_TURNS = 4  # the buffers of a round are at least so many times the L2: no launch finds its inputs there
_MOST_LAUNCHES = 512
_EMPTY_ROUNDS = 15


class TimedWrong(Exception):
    """An output of a timed launch is wrong."""

    def __init__(self, case: str, mismatch: Mismatch) -> None:
        super().__init__(case)
        self.case, self.mismatch = case, mismatch


def calibrate(desk: Desk, worker: Worker) -> float:
    """Seconds of a round of one launch that does nothing to speak of, by a worker that runs nobody's submission.

    It has a kernel in it because the GPU's switch from one process to the other, and back, is most of the constant.
    """
    spread = desk.lay(Case("empty", (Array("out", (1,), role="out"),)))
    desk.poison(spread)
    worker.plan(spread)
    return median(worker.round("", desk, spread, 10.0) for _ in range(_EMPTY_ROUNDS))


def launches_for(desk: Desk, machine: Machine, exercise: Exercise, case: Case) -> int:
    """How many launches make a round: long enough for the clock, more memory than the L2 holds, within the arenas."""
    floor_s = exercise.bytes_moved(case) / (machine.copy_gbps * 1e9)
    wanted = max(_ROUND_S / floor_s, _L2_TURNS * machine.l2_bytes / exercise.bytes_moved(case), 2)
    return max(1, min(int(wanted) + 1, _MOST_LAUNCHES, desk.capacity(case)))


def sample(
    desk: Desk, spread: Spread, exercise: Exercise, peers: dict[str, Worker], constant_s: float
) -> dict[str, float]:
    """One trial: every peer once over the same fresh inputs; seconds a launch. The submission's outputs are checked.

    Raises:
        WorkerFailed: the submission failed.
        TimedWrong: an output of the submission is wrong.
    """
    desk.deal(spread)
    seconds = {}
    for peer, worker in peers.items():
        desk.poison(spread)
        taken = worker.round(peer, desk, spread, exercise.round_limit_s)
        seconds[peer] = max(taken - constant_s, 1e-9) / len(spread.launches)
        if peer == "submission":
            mismatch = desk.check(spread, exercise)
            if mismatch:
                raise TimedWrong(spread.case.name, mismatch)
    return seconds
