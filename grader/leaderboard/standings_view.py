"""Show the standings in a notebook or a terminal, from a published folder or from a store."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grader.errors import GraderError
from grader.exercises import find
from grader.leaderboard.site import as_text, fragment
from grader.leaderboard.standings import MADE_BY, Board, boards, from_json

SOURCE_VARIABLE = "GRADER_LEADERBOARD"
_STANDINGS, _STORE = "standings.json", "leaderboard.sqlite"
_MOST_BYTES = 50_000_000


@dataclass(frozen=True)
class View:
    """Standings as HTML and text, or a `message` that says why there are none.

    `names`, from pseudonym to student, is for the instructor only: text and `to_dict` show it, HTML never.
    """

    exercise: str
    boards: tuple[Board, ...]
    message: str = ""
    names: Mapping[str, str] = field(default_factory=dict)

    def _repr_html_(self) -> str:
        return fragment(self.boards, self.message)

    def __str__(self) -> str:
        return as_text(self.boards, self.message, self.names)

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for `json.dumps`."""
        data: dict[str, Any] = {"made_by": MADE_BY, "exercise": self.exercise, "message": self.message}
        data["boards"] = [board.to_dict() for board in self.boards]
        return {**data, "names": dict(self.names)} if self.names else data


def standings(exercise_id: str, source: Path | str | None = None) -> View:
    """The standings of an exercise, from a published folder, its `standings.json`, or a store.

    Without `source`, the environment variable GRADER_LEADERBOARD gives the path, or the file is in this folder.

    Raises:
        UnknownExercise: no exercise has this id.
        GraderError: `source` cannot be read, or has no standings.
    """
    title = find(exercise_id).title
    path = _source(source)
    if path is None:
        message = (
            f"No standings were found. Ask your instructor where they are published, and give that folder, as in "
            f"standings({exercise_id}, '/path/to/folder'), or set {SOURCE_VARIABLE} to it."
        )
        return View(exercise_id, (), message)
    found = tuple(board for board in _read(path, exercise_id) if board.exercise == exercise_id)
    return View(exercise_id, found, "" if found else f"{title} has no standings yet: no submission has been measured.")


def _source(source: Path | str | None) -> Path | None:
    named = source or os.environ.get(SOURCE_VARIABLE)
    if named:
        return Path(named).expanduser()
    return next((Path(name) for name in (_STORE, _STANDINGS) if Path(name).is_file()), None)


def _read(path: Path, exercise_id: str) -> list[Board]:
    if path.is_dir():
        path = path / _STANDINGS
    try:
        with path.open("rb") as file:
            if file.read(6) == b"SQLite":
                from grader.leaderboard.store import Store  # loads SQLAlchemy

                with Store(path, create=False) as store:
                    return boards(store, exercise_id)
            file.seek(0)
            data = file.read(_MOST_BYTES)
    except OSError as error:
        raise GraderError(f"The standings in {path} cannot be read: {error.strerror or error}.") from None
    return from_json(data.decode("utf-8", "replace"), path)
