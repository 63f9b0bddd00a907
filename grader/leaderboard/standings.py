"""Standings: what of a store may be published, as plain data, and as the JSON that is published."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.errors import GraderError
from grader.exercise import Exercise
from grader.exercises import EXERCISES
from grader.leaderboard.ranking import Interval, Row, Unranked, assign, rank

if TYPE_CHECKING:
    from grader.leaderboard.store import Run, Store
    from grader.verdict import Verdict

MADE_BY = "grader leaderboard"  # how a published file is known for ours
_VERSION = 3


@dataclass(frozen=True)
class Board:
    """The standings of one exercise on one GPU (empty: without one), from one run. Dates are ISO 8601, UTC."""

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
    baseline: str  # its label; empty where the exercise has none
    ceiling: str  # what the shares of the roofline are shares of; empty where the exercise has none
    cases: tuple[str, ...]
    trials: tuple[int, ...]  # the fewest and the most that an entry had in a case; empty where nothing was timed
    rows: tuple[Row, ...]
    unranked: tuple[Unranked, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for `json.dumps`."""
        data = asdict(self)
        data["rows"] = [
            {**row, "time_us": row["time_us"]._asdict(), "ratio": _as_dict(row["ratio"])} for row in data["rows"]
        ]
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Board:
        """The inverse of `to_dict`."""
        rows = (
            Row(
                **{
                    **row,
                    "time_us": Interval(**row["time_us"]),
                    "ratio": row["ratio"] and Interval(**row["ratio"]),
                    "remarks": tuple(row["remarks"]),
                }
            )
            for row in data["rows"]
        )
        return cls(
            **{
                **data,
                "cases": tuple(data["cases"]),
                "trials": tuple(data["trials"]),
                "rows": tuple(rows),
                "unranked": tuple(Unranked(**{**one, "remarks": tuple(one["remarks"])}) for one in data["unranked"]),
            }
        )


def boards(store: Store, only: str | None = None) -> list[Board]:
    """The newest finished run of every exercise on every GPU, in the order of the exercises, newest first.

    A run without a GPU is shown only where there is none with one. Exercises that are not known here are left out, and
    all others where `only` is the id of one.
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
        found += [_board(store, run, exercise) for run in newest.values()]
    return found


def to_json(found: list[Board]) -> str:
    """The text of a `standings.json`."""
    data = {"made_by": MADE_BY, "version": _VERSION, "boards": [board.to_dict() for board in found]}
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def from_json(text: str, origin: Path | str) -> list[Board]:
    """The boards of a `standings.json`.

    Raises:
        GraderError: it is none, or of another version of the grader.
    """
    try:
        data = json.loads(text)
        if data["made_by"] != MADE_BY:
            raise ValueError
        if data["version"] != _VERSION:
            raise GraderError(
                f"{origin} was published by another version of the grader; publish it anew, or update this one."
            )
        return [Board.from_dict(board) for board in data["boards"]]
    except (ValueError, TypeError, KeyError, AttributeError):
        raise GraderError(
            f"{origin} holds no standings; name a folder that `grader leaderboard publish` wrote, or the JSON in it."
        ) from None


def _board(store: Store, run: Run, exercise: Exercise) -> Board:
    entries = store.entries(run.id)
    names = assign(store, [entry.student for entry in entries])
    rows, unranked = rank([(names[entry.student], entry.verdict) for entry in entries], exercise)
    trials = {t.trials for entry in entries if entry.verdict for t in entry.verdict.timings if t.peer == "submission"}
    environment = run.environment
    return Board(
        exercise=exercise.id,
        title=exercise.title,
        chapter=exercise.chapter,
        gpu=_gpu(run),
        driver=environment.driver if environment else "",
        torch=environment.torch if environment else "",
        triton=environment.triton if environment else "",
        python=environment.python if environment else "",
        sandbox=environment.sandbox if environment else "",
        clock=_clock([entry.verdict for entry in entries if entry.verdict is not None and entry.verdict.timings]),
        copy_gbps=environment.copy_gbps if environment else None,
        grader=run.grader,
        run_id=run.id,
        measured_at=run.finished_at,
        baseline=exercise.baselines[0].label if exercise.baselines else "",
        ceiling=exercise.ceiling,
        cases=tuple(case.name for case in exercise.timed_cases),
        trials=(min(trials), max(trials)) if trials else (),
        rows=rows,
        unranked=unranked,
    )


def _clock(timed: list[Verdict]) -> str:
    """Which clock counted: the verdicts' own words where these agree, else how often it was which."""
    said = {verdict.clock for verdict in timed}
    if len(said) < 2:
        return next(iter(said), "")
    own = [{time.clock for time in verdict.timings if time.peer == "submission"} for verdict in timed]
    return (
        f"CUDA events where they agree with the arbiter's clock (throughout in {own.count({'events'})} of {len(own)} "
        "entries), else the arbiter's"
    )


def _gpu(run: Run) -> str:
    return run.environment.gpu if run.environment else ""


def _as_dict(interval: Interval | None) -> dict[str, float] | None:
    return interval._asdict() if interval else None
