"""The arbiter's clock: fresh inputs, submission and baselines in turn, less what a round costs beyond its launches."""

from __future__ import annotations

from statistics import median

from grader.exercise import Array, Case, Exercise
from grader.judge.desk import Desk, Spread
from grader.judge.machine import Machine
from grader.judge.workers import Worker, WorkerFailed
from grader.verdict import Mismatch

__all__ = ["BaselineFailed", "TimedWrong", "calibrate", "launches_for", "sample"]

_ROUND_S = 1.5e-3  # of launches in a round: against it the constant's spread of a few µs is some 0.2 %
_L2_TURNS = 4  # the buffers of a round are at least so many times the L2: no launch finds its inputs there
_MOST_LAUNCHES = 512
_CALIBRATION_ELEMENTS = 1 << 24
_CALIBRATION_LAUNCHES = (4, 24)
_CALIBRATION_ROUNDS = 16


class BaselineFailed(Exception):
    """A baseline did not run: `args` are its name and what happened."""


class TimedWrong(Exception):
    """An output of a timed launch is wrong."""

    def __init__(self, case: str, mismatch: Mismatch) -> None:
        super().__init__(case)
        self.case, self.mismatch = case, mismatch


def calibrate(desk: Desk, worker: Worker) -> float:
    """Seconds that a round costs beyond its launches, by a worker that runs nobody's submission.

    Rounds of few and of many launches of one kernel, on poisoned buffers as every round is: the line through the two
    medians meets zero launches at the constant. An empty round would not do: the GPU's switch from one process to the
    other and back, most of the constant, is cheaper when the other has little to run (40 µs, not 210, on an H200).
    """
    case = Case("calibration", (Array("out", (_CALIBRATION_ELEMENTS,), role="out"),))
    medians = []
    for launches in _CALIBRATION_LAUNCHES:
        spread = desk.lay(case, launches)
        worker.plan(spread)
        rounds = []
        for _ in range(_CALIBRATION_ROUNDS):
            desk.poison(spread)
            rounds.append(worker.round("", desk, 10.0))
        medians.append(median(rounds[1:]))
    few, many = _CALIBRATION_LAUNCHES
    return medians[0] - few * (medians[1] - medians[0]) / (many - few)


def launches_for(desk: Desk, machine: Machine, exercise: Exercise, case: Case) -> int:
    """How many launches make a round: long enough for the clock, more memory than the L2 holds, within the arenas."""
    floor_s = exercise.bytes_moved(case) / (machine.copy_gbps * 1e9)
    wanted = max(_ROUND_S / floor_s, _L2_TURNS * machine.l2_bytes / exercise.bytes_moved(case), 2)
    return max(1, min(int(wanted) + 1, _MOST_LAUNCHES, desk.capacity(case)))


def sample(
    desk: Desk, spread: Spread, exercise: Exercise, peers: dict[str, Worker], constant_s: float, limit_s: float
) -> dict[str, float]:
    """One trial: every peer once over the same fresh inputs; seconds a launch. The submission's outputs are checked.

    Raises:
        WorkerFailed: the submission failed.
        BaselineFailed: a baseline did, which is no fault of the submission.
        TimedWrong: an output of the submission is wrong.
    """
    desk.deal(spread)
    seconds = {}
    for peer, worker in peers.items():
        desk.poison(spread)
        try:
            taken = worker.round(peer, desk, limit_s)
        except WorkerFailed as failed:
            if peer == "submission":
                raise
            raise BaselineFailed(peer, failed.failure.message) from None
        seconds[peer] = max(taken - constant_s, 1e-9) / len(spread.launches)
        if peer == "submission":
            mismatch = desk.check(spread, exercise)
            if mismatch:
                raise TimedWrong(spread.case.name, mismatch)
    return seconds
