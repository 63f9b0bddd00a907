"""The publishable standings in a store, as plain data and as `standings.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from grader.errors import GraderError
from grader.exercise import Exercise
from grader.exercises import EXERCISES
from grader.leaderboard.course_board import course_boards
from grader.leaderboard.ghost_rows import REFERENCE, Ghost, ghosts
from grader.leaderboard.ranking import Interval, Row, Unranked, assign, rank
from grader.verdict import PRACTICE_CLOCK

if TYPE_CHECKING:
    from grader.leaderboard.store import Entry, Run, Store
    from grader.verdict import Verdict

MADE_BY = "grader leaderboard"  # marks published files
_VERSION = 5


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
