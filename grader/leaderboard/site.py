"""The published leaderboard: a static site that asks nobody for anything, and its standings as JSON."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.errors import GraderError
from grader.exercises import EXERCISES
from grader.leaderboard.render import page
from grader.leaderboard.standings import MADE_BY, Board, boards, to_json
from grader.leaderboard.store import Store

__all__ = ["PublishReport", "publish"]

_MARKS = (f'<meta name="generator" content="{MADE_BY}">', f'"made_by": "{MADE_BY}"')


@dataclass(frozen=True)
class PublishReport:
    """What was published where. `left_out`: of each exercise that was not, a sentence that says why."""

    dest: Path
    files: tuple[str, ...]
    exercises: tuple[str, ...]
    left_out: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.left_out

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for `json.dumps`."""
        lists = {"files": list(self.files), "exercises": list(self.exercises), "left_out": list(self.left_out)}
        return {"dest": str(self.dest), **lists}

    def as_text(self) -> str:
        """A few lines for a terminal."""
        what = ", ".join(self.exercises) or "no exercise: nothing has been measured yet"
        return "\n".join([f"Published {what}.", *self.left_out, f"Open {self.dest / 'index.html'}"])


def publish(store: Store, dest: Path | str) -> PublishReport:
    """Writes the site of everything in `store` to the folder `dest`, each file in one step, `index.html` last.

    Files of an earlier publication are replaced; nothing else in `dest` is touched, and nothing is deleted. An exercise
    of which no page can be made is left out.

    Raises:
        GraderError: `dest` holds a file of the same name that is not ours, or the store itself, or cannot be written;
            or there are standings, and not one page could be made.
    """
    dest = Path(dest).absolute()
    found: list[Board] = []
    texts: dict[str, str] = {}
    left_out = []
    for exercise in EXERCISES.values():
        try:
            own = boards(store, exercise.id)
            text = page("exercise", made_by=MADE_BY, title=exercise.title, boards=own) if own else ""
            (text + to_json(own)).encode()  # what cannot be written is to be found here
        except GraderError:
            raise  # of the store
        except Exception as error:  # whatever is wrong with one exercise, the others' pages are made
            left_out.append(
                f"{exercise.id} is left out: no page of it can be made ({type(error).__name__}). A page of it that was "
                "published before stays as it is."
            )
            continue
        if own:
            found += own
            texts[f"{exercise.id}.html"] = text
    if left_out and not found:
        raise GraderError(f"Nothing was published: {' '.join(left_out)}")
    exercises = tuple(dict.fromkeys(board.exercise for board in found))
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
    return PublishReport(dest, tuple(texts), exercises, tuple(left_out))


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
