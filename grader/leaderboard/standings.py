"""The publishable standings in a store, as plain data and as `standings.json`.

A board is of one exercise. The course's board has the geometric mean of a student's ratios over the exercises that were
ranked. Ghost rows have no rank and show where the numbers come from: the reference, the baseline and the limit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import geometric_mean, median
from typing import TYPE_CHECKING, Any

from grader.errors import GraderError
from grader.exercise import Exercise
from grader.exercises import EXERCISES
from grader.leaderboard.ranking import Interval, Row, Unranked, assign, mean_of, places, rank, row_of, timings_of
from grader.verdict import PRACTICE_CLOCK

if TYPE_CHECKING:
    from grader.leaderboard.store import Entry, Run, Store
    from grader.verdict import Verdict

MADE_BY = "grader leaderboard"  # marks published files
REFERENCE = "*reference*"  # the student in a run's entries whose work is the course's own solution
REFERENCE_NAME = "the course’s solution"
LIMIT_NAME = "the limit of the hardware"
FLOOR = 0.1  # the ratio of an exercise without a rank; also the least that a ranked one counts
_VERSION = 5


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


@dataclass(frozen=True)
class Past:
    """An earlier or the newest run of a board: how many were ranked, and the best and the median speed.

    The speeds are ratios to the baseline; without one, launches per microsecond.
    """

    measured_at: str
    ranked: int
    best: float | None
    median: float | None


@dataclass(frozen=True)
class Board:
    """The standings of one exercise on one GPU, or on none (empty), from one run. Dates are ISO 8601, UTC."""

    exercise: str
    title: str
    chapter: str
    gpu: str
    driver: str
    torch: str
    triton: str
    python: str
    sandbox: str
    clock: str
    copy_gbps: float | None
    grader: str
    run_id: int
    measured_at: str
    baseline: str  # its label, or empty
    ceiling: str  # of the roofline, or empty
    cases: tuple[str, ...]
    trials: tuple[int, ...]  # the minimum and maximum per case; empty if nothing was timed
    rows: tuple[Row, ...]
    unranked: tuple[Unranked, ...]
    ghosts: tuple[Ghost, ...] = ()
    due: str = ""  # the deadline for its work, if there is one
    history: tuple[Past, ...] = ()  # oldest first, of the same version of the exercise

    @property
    def lines(self) -> list[Row | Ghost]:
        """The ranked rows and the ghost rows, fastest first."""
        return sorted([*self.rows, *self.ghosts], key=_speed, reverse=True)

    def without_remarks(self) -> Board:
        """The board without the notes to the instructor."""
        rows = tuple(replace(row, remarks=()) for row in self.rows)
        return replace(self, rows=rows, unranked=tuple(replace(each, remarks=()) for each in self.unranked))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for `json.dumps`."""
        data = asdict(self)
        for row in data["rows"]:
            row["time_us"] = row["time_us"]._asdict()
            row["ratio"] = row["ratio"] and row["ratio"]._asdict()
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Board:
        """The inverse of `to_dict`."""
        lists = {key: tuple(data[key]) for key in ("cases", "trials")}
        unranked = tuple(Unranked(**{**each, "remarks": tuple(each["remarks"])}) for each in data["unranked"])
        ghosts_ = tuple(Ghost(**each) for each in data["ghosts"])
        history = tuple(Past(**each) for each in data["history"])
        rows = tuple(map(_row, data["rows"]))
        return cls(**{**data, **lists, "rows": rows, "unranked": unranked, "ghosts": ghosts_, "history": history})


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


def _speed(line: Row | Ghost) -> float:
    return line.speed.value if isinstance(line, Row) else line.speed


def _row(data: Mapping[str, Any]) -> Row:
    intervals = {"time_us": Interval(**data["time_us"]), "ratio": data["ratio"] and Interval(**data["ratio"])}
    return Row(**{**data, **intervals, "remarks": tuple(data["remarks"])})


def boards(store: Store, only: str | None = None) -> list[Board]:
    """The newest finished run of every known exercise, or of `only` one, on every GPU, newest first.

    A run without a GPU is shown only if there is none with one.
    """
    found = []
    runs = store.finished_runs()
    for exercise in EXERCISES.values():
        newest: dict[str, Run] = {}
        for run in runs:
            if run.exercise == exercise.id and only in (None, exercise.id):
                newest.setdefault(_gpu(run), run)
        if len(newest) > 1:
            newest.pop("", None)
        found += [_board(store, run, exercise, _earlier(runs, run)) for run in newest.values()]
    return found


def _earlier(runs: list[Run], newest: Run) -> list[Run]:
    """The finished runs that a board's history compares, oldest first: same exercise, version and GPU."""
    key = (newest.exercise, newest.fingerprint, _gpu(newest))
    return [run for run in reversed(runs) if (run.exercise, run.fingerprint, _gpu(run)) == key]


def to_json(found: list[Board]) -> str:
    """The text of a `standings.json`."""
    course = [board.to_dict() for board in course_boards(found)]
    data = {"made_by": MADE_BY, "version": _VERSION, "boards": [board.to_dict() for board in found], "course": course}
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def from_json(text: str, origin: Path | str) -> list[Board]:
    """The boards in the text of a `standings.json` at `origin`.

    Raises:
        GraderError: the text is something else, or was written by another version of the grader.
    """
    try:
        data = json.loads(text)
        if data["made_by"] != MADE_BY:
            raise ValueError
        if data["version"] != _VERSION:
            raise GraderError(f"{origin} is from another version of the grader; publish it again, or update this one.")
        return [Board.from_dict(board) for board in data["boards"]]
    except (ValueError, TypeError, KeyError, AttributeError):
        raise GraderError(
            f"{origin} has no standings in it; name a folder that `grader leaderboard publish` wrote, or its JSON file."
        ) from None


def _board(store: Store, run: Run, exercise: Exercise, runs: list[Run]) -> Board:
    entries, reference = _shown(store, run)
    names = assign(store, [entry.student for entry in entries])
    rows, unranked = rank([(names[entry.student], entry.verdict) for entry in entries], exercise)
    timed = [entry.verdict for entry in entries if entry.verdict is not None]
    trials = {t.trials for entry in entries if entry.verdict for t in entry.verdict.timings if t.peer == "submission"}
    machine = {name: getattr(run.environment, name, "") for name in ("driver", "torch", "triton", "python", "sandbox")}
    return Board(
        exercise=exercise.id,
        title=exercise.title,
        chapter=exercise.chapter,
        gpu=_gpu(run),
        **machine,
        clock=_clock([entry.verdict for entry in entries if entry.verdict is not None and entry.verdict.timings]),
        copy_gbps=run.environment.copy_gbps if run.environment else None,
        grader=run.grader,
        run_id=run.id,
        measured_at=run.finished_at,
        due=run.due,
        baseline=exercise.baselines[0].label if exercise.baselines else "",
        ceiling=exercise.ceiling,
        cases=tuple(case.name for case in exercise.timed_cases),
        trials=(min(trials), max(trials)) if trials else (),
        rows=rows,
        unranked=unranked,
        ghosts=ghosts(timed, reference, exercise) if rows else (),
        history=tuple(_past(store, each, exercise) for each in runs) if len(runs) > 1 else (),
    )


def _shown(store: Store, run: Run) -> tuple[list[Entry], Verdict | None]:
    """The entries of a run but for hidden students, and the verdict on the course's own solution."""
    entries, hidden = store.entries(run.id), store.hidden()
    own = next((entry.verdict for entry in entries if entry.student == REFERENCE), None)
    return [entry for entry in entries if entry.student not in {REFERENCE, *hidden}], own


def _past(store: Store, run: Run, exercise: Exercise) -> Past:
    rows, _ = rank([("", entry.verdict) for entry in _shown(store, run)[0]], exercise)
    speeds = [row.speed.value for row in rows]
    return Past(run.finished_at, len(rows), max(speeds, default=None), median(speeds) if speeds else None)


def _clock(timed: list[Verdict]) -> str:
    """The clock that counted: the verdicts' own text if they agree, otherwise how often it was which."""
    clocks = {verdict.clock for verdict in timed}
    if len(clocks) < 2:
        return next(iter(clocks), "")
    own = [{time.clock for time in verdict.timings if time.peer == "submission"} for verdict in timed]
    practice = f"{PRACTICE_CLOCK}; " if any(verdict.environment.practice for verdict in timed) else ""
    return (
        f"{practice}CUDA events if they agree with the arbiter's clock (always in {own.count({'events'})} of "
        f"{len(own)} entries), otherwise the arbiter's"
    )


def _gpu(run: Run) -> str:
    return run.environment.gpu if run.environment else ""


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


def course_boards(boards: Sequence[Board]) -> list[CourseBoard]:
    """The course's board on each GPU with two ranked exercises or more. Exercises without a baseline do not count."""
    found = []
    for gpu in dict.fromkeys(board.gpu for board in boards if board.gpu):
        counted = [board for board in boards if board.gpu == gpu and board.baseline and board.rows]
        if len(counted) < 2:
            continue
        ratios = [{row.pseudonym: row.ratio for row in board.rows if row.ratio} for board in counted]
        names = sorted({name for each in ratios for name in each})
        means = {name: _mean_ratio([each.get(name) for each in ratios]) for name in names}
        ordered = sorted(names, key=lambda name: (-means[name].value, name))
        placed = zip(ordered, places([means[name] for name in ordered]), strict=True)
        rows = tuple(
            Standing(rank, tied, name, means[name], sum(name in each for each in ratios))
            for name, (rank, tied) in placed
        )
        found.append(CourseBoard(gpu, tuple(board.exercise for board in counted), rows))
    return found


def _mean_ratio(ratios: Sequence[Interval | None]) -> Interval:
    """The geometric mean, each ratio at least the floor."""
    return mean_of([Interval(*(max(FLOOR, end) for end in each or (FLOOR,) * 3)) for each in ratios])
