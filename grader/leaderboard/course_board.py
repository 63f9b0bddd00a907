"""The board of a whole course: the geometric mean of a student's ratios over the exercises that were ranked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from grader.leaderboard.ranking import Interval, Row, places

FLOOR = 0.1  # the ratio of an exercise without a rank; also the least that a ranked one counts


class ExerciseBoard(Protocol):
    """The parts of an exercise's board that count."""

    @property
    def exercise(self) -> str: ...
    @property
    def gpu(self) -> str: ...
    @property
    def baseline(self) -> str: ...
    @property
    def rows(self) -> tuple[Row, ...]: ...


@dataclass(frozen=True)
class Standing:
    """A student's place. `ranked`: on how many of the course board's exercises the student has a rank."""

    rank: int
    tied: bool
    pseudonym: str
    mean: Interval
    ranked: int


@dataclass(frozen=True)
class CourseBoard:
    """The standings over several exercises on one GPU."""

    gpu: str
    exercises: tuple[str, ...]
    rows: tuple[Standing, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for `json.dumps`."""
        data = asdict(self)
        for row in data["rows"]:
            row["mean"] = row["mean"]._asdict()
        return data


def course_boards(boards: Sequence[ExerciseBoard]) -> list[CourseBoard]:
    """The course's board on each GPU with two ranked exercises or more. Exercises without a baseline do not count."""
    found = []
    for gpu in dict.fromkeys(board.gpu for board in boards if board.gpu):
        counted = [board for board in boards if board.gpu == gpu and board.baseline and board.rows]
        if len(counted) < 2:
            continue
        ratios = [{row.pseudonym: row.ratio for row in board.rows if row.ratio} for board in counted]
        names = sorted({name for each in ratios for name in each})
        means = {name: _mean([each.get(name) for each in ratios]) for name in names}
        ordered = sorted(names, key=lambda name: (-means[name].value, name))
        placed = zip(ordered, places([means[name] for name in ordered]), strict=True)
        rows = tuple(
            Standing(rank, tied, name, means[name], sum(name in each for each in ratios))
            for name, (rank, tied) in placed
        )
        found.append(CourseBoard(gpu, tuple(board.exercise for board in counted), rows))
    return found


def _mean(ratios: Sequence[Interval | None]) -> Interval:
    """The geometric mean, each ratio at least the floor; the errors of the exercises are independent."""
    whole = [Interval(*(max(FLOOR, end) for end in each or (FLOOR,) * 3)) for each in ratios]
    value = math.exp(math.fsum(math.log(each.value) for each in whole) / len(whole))
    down = math.hypot(*(math.log(each.value / each.low) for each in whole)) / len(whole)
    up = math.hypot(*(math.log(each.high / each.value) for each in whole)) / len(whole)
    return Interval(value, value * math.exp(-down), value * math.exp(up))
