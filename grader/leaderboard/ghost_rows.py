"""Rows without a rank that show where a board's numbers come from: the reference, the baseline and the limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import geometric_mean, median

from grader.exercise import Exercise
from grader.leaderboard.ranking import row_of, timings_of
from grader.verdict import Verdict

REFERENCE = "*reference*"  # the student in a run's entries whose work is the course's own solution
REFERENCE_NAME = "the course’s solution"
LIMIT_NAME = "the limit of the hardware"


@dataclass(frozen=True)
class Ghost:
    """A row without a rank; its numbers are as a `Row`'s, without intervals."""

    name: str
    time_us: float
    ratio: float | None
    share_of_roofline: float | None

    @property
    def speed(self) -> float:
        """The key of the board's order."""
        return self.ratio or 1 / self.time_us


def ghosts(verdicts: Sequence[Verdict], reference: Verdict | None, exercise: Exercise) -> tuple[Ghost, ...]:
    """The ghost rows of a run, fastest first. Baseline and limit are medians over the run's timed `verdicts`."""
    timed = [timings_of(each, exercise, "submission") or [] for each in verdicts]
    first = exercise.baselines[0] if exercise.baselines else None
    base = _mean_us([[t.median_us for t in timings_of(each, exercise, first.id) or ()] for each in verdicts if first])
    limit = _mean_us([[t.median_us * (t.share_of_roofline or 0.0) for t in each] for each in timed])
    found: list[Ghost] = []
    if first is not None and base:
        found.append(Ghost(first.label, base, 1.0, None))
    if limit and exercise.ceiling:
        found.append(Ghost(LIMIT_NAME, limit, base / limit if base else None, 1.0))
    peers = ["submission", *([first.id] if first else [])]
    if reference is not None and all(timings_of(reference, exercise, peer) for peer in peers):
        row = row_of(REFERENCE_NAME, reference, exercise)
        ratio = row.ratio.value if row.ratio else None
        found.append(Ghost(row.pseudonym, row.time_us.value, ratio, row.share_of_roofline))
    return tuple(sorted(found, key=lambda ghost: -ghost.speed))


def _mean_us(times: Sequence[Sequence[float]]) -> float | None:
    """The geometric mean over the cases of the median over the verdicts; None if no verdict has all times."""
    whole = [each for each in times if each and all(time > 0 for time in each)]
    return geometric_mean([median(case) for case in zip(*whole, strict=True)]) if whole else None
