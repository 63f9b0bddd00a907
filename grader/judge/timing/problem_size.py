"""The problem size of timed cases: rows are multiplied until merging launches would save next to nothing."""

from __future__ import annotations

from grader.exercise import Case, Exercise
from grader.judge import score
from grader.judge.checking.buffers import Buffers, laid
from grader.judge.gpu.ceilings import Machine

_LAUNCH_S = 480e-6  # by the roofline; merging launches saves about 3.8 µs per launch
_MOST_ELEMENTS = (1 << 31) - (1 << 24)  # per array: offsets of a block past its end still fit an int
_FEWEST_LAUNCHES = 4


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
