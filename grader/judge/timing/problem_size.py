"""How large a case is timed: its rows are multiplied until merging several launches would save next to nothing."""

from __future__ import annotations

from grader.exercise import Case, Exercise
from grader.judge import score
from grader.judge.checking.buffers import Desk, laid
from grader.judge.gpu.ceilings import Machine

_LAUNCH_S = 480e-6  # at the ceiling: merging launches saves some 3.8 µs of each
_MOST_ELEMENTS = (1 << 31) - (1 << 24)  # of an array: a block past its end still has offsets that an int holds
_FEWEST_LAUNCHES = 4


class Sizes:
    """By exercise and case, how many times its rows are timed.

    Large enough that a launch is long, as far as memory and a 32-bit index allow. Found once, when no submission is
    alive: one that holds memory must not choose the size. Where memory ended the growth, it goes on when there is room:
    others may have held that memory.
    """

    def __init__(self) -> None:
        self._scales: dict[tuple[str, str], int] = {}
        self._cramped: set[tuple[str, str]] = set()

    def scale(self, exercise: Exercise, case: Case, machine: Machine, desk: Desk) -> int:
        """How many times the rows make a launch long enough, or as long as memory allows."""
        key = exercise.id, case.name
        if key not in self._scales:
            self._grow(exercise, case, machine, desk)
        return self._scales[key]

    def outgrown(self, exercise: Exercise, case: Case, machine: Machine, desk: Desk) -> bool:
        """Whether a size that memory had kept small has grown now: what was timed at the old one says nothing more."""
        key = exercise.id, case.name
        before = self._scales.get(key)
        if key in self._cramped:
            self._grow(exercise, case, machine, desk)
        return self._scales.get(key) != before

    def _grow(self, exercise: Exercise, case: Case, machine: Machine, desk: Desk) -> None:
        key = exercise.id, case.name
        scale = self._scales.get(key, 1)
        self._cramped.discard(key)
        wanted_s = _LAUNCH_S / exercise.over_ceiling
        while case.times(2) != case and score.ceiling_s(exercise, case.times(scale), machine) < wanted_s:
            if _largest(case.times(2 * scale)) > _MOST_ELEMENTS:
                break
            if not desk.fits(case.times(2 * scale), _FEWEST_LAUNCHES):
                self._cramped.add(key)
                break
            scale *= 2
        self._scales[key] = scale


def _largest(case: Case) -> int:
    return max(slot.span for slot in laid(case, 1).launches[0].values())
