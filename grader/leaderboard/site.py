"""The published leaderboard: a static site that asks nobody for anything, and its standings as JSON."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.errors import GraderError
from grader.leaderboard.render import page
from grader.leaderboard.standings import MADE_BY, boards, to_json
from grader.leaderboard.store import Store

__all__ = ["PublishReport", "publish"]

_MARKS = (f'<meta name="generator" content="{MADE_BY}">', f'"made_by": "{MADE_BY}"')


@dataclass(frozen=True)
class PublishReport:
    """What was published where."""

    dest: Path
    files: tuple[str, ...]
    exercises: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for `json.dumps`."""
        return {"dest": str(self.dest), "files": list(self.files), "exercises": list(self.exercises)}

    def as_text(self) -> str:
        """A line or two for a terminal."""
        what = ", ".join(self.exercises) or "no exercise: nothing has been measured yet"
        return f"Published {what}.\nOpen {self.dest / 'index.html'}"


def publish(store: Store, dest: Path | str) -> PublishReport:
    """Writes the site of everything in `store` to the folder `dest`, each file in one step, `index.html` last.

    Files of an earlier publication are replaced; nothing else in `dest` is touched, and nothing is deleted.

    Raises:
        GraderError: `dest` holds a file of the same name that is not ours, or the store itself, or cannot be written.
    """
    dest = Path(dest).absolute()
    found = boards(store)
    exercises = tuple(dict.fromkeys(board.exercise for board in found))
    texts = {}
    for exercise in exercises:
        own = [board for board in found if board.exercise == exercise]
        texts[f"{exercise}.html"] = page("exercise", made_by=MADE_BY, title=own[0].title, boards=own)
    texts["standings.json"] = to_json(found)
    texts["index.html"] = page("index", made_by=MADE_BY, boards=found)
    if store.path.resolve().is_relative_to(dest.resolve()):
        raise GraderError(
            f"{dest} holds the store {store.path.name}, which has the students' names in it and must not be served; "
            "publish to another folder."
        )
    try:
        dest.mkdir(parents=True, exist_ok=True)
        for name in texts:
            _hold_ours(dest / name)
        for name, text in texts.items():
            _replace(dest / name, text)
    except OSError as error:
        raise GraderError(f"The leaderboard cannot be written to {dest}: {error.strerror or error}.") from error
    return PublishReport(dest, tuple(texts), exercises)


def _hold_ours(path: Path) -> None:
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        start = file.read(4096)
    if not any(mark in start for mark in _MARKS):
        raise GraderError(
            f"{path} was not made by the leaderboard and will not be overwritten; publish to another folder."
        )


def _replace(path: Path, text: str) -> None:
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), 0o644)  # a web server's user reads it
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
