"""The learner's best result of each exercise, kept in `.grader/progress.json` in the learner's folder."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from grader.verdict import Verdict

__all__ = ["Best", "keep", "learner_folder", "load"]

_FOLDER, _FILE = ".grader", "progress.json"
_CHAPTER = re.compile(r"\d\d_\w+")


@dataclass(frozen=True)
class Best:
    """The best verdict so far on one exercise. `reachable_points` is what that machine could have given."""

    points: float
    max_points: float
    reachable_points: float
    status: str
    device: str
    gpu: str
    at: str
    submission_sha256: str
    checks: int = 1

    @classmethod
    def of(cls, verdict: Verdict) -> Best:
        environment = verdict.environment
        return cls(verdict.points, verdict.max_points, verdict.reachable_points, verdict.status, environment.device,
                   environment.gpu, verdict.started_at, verdict.submission_sha256)  # fmt: skip


def learner_folder(start: Path | None = None) -> Path:
    """The folder that holds the chapters: the nearest one above that has a `.grader`, else the chapter's parent."""
    here = (start or Path.cwd()).absolute()
    for folder in (here, *here.parents):
        if (folder / _FOLDER).is_dir():
            return folder
    return here.parent if _CHAPTER.fullmatch(here.name) else here


def load(folder: Path | None = None) -> dict[str, Best]:
    """The best results by exercise id; none where there is no record, or none that can be read."""
    return _read((folder or learner_folder()) / _FOLDER / _FILE)[0]


def keep(verdict: Verdict, folder: Path | None = None) -> None:
    """Records a verdict where it is at least as good as the best so far. One that cannot be written is left alone."""
    if verdict.status == "unusable":
        return
    path = (folder or learner_folder()) / _FOLDER / _FILE
    with contextlib.suppress(OSError), _locked(path):
        known, sound = _read(path)
        if not sound:
            os.replace(path, path.with_suffix(".unreadable.json"))
        best, before = Best.of(verdict), known.get(verdict.exercise)
        if before is not None:
            better = (best.points, best.reachable_points) >= (before.points, before.reachable_points)
            best = Best(**{**asdict(best if better else before), "checks": before.checks + 1})
        known[verdict.exercise] = best
        _write(path, {"version": 1, "exercises": {name: asdict(value) for name, value in known.items()}})


def _read(path: Path) -> tuple[dict[str, Best], bool]:
    """What can be read of the record, and whether that is all of it."""
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))["exercises"].items()
    except FileNotFoundError:
        return {}, True
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}, False
    found, sound = {}, True
    for exercise_id, entry in entries:
        try:
            found[str(exercise_id)] = _best(entry)
        except (TypeError, ValueError, LookupError):
            sound = False
    return found, sound


def _best(entry: dict[str, Any]) -> Best:
    kinds = {"points": float, "max_points": float, "reachable_points": float, "checks": int}
    return Best(**{each.name: kinds.get(each.name, str)(entry[each.name]) for each in fields(Best)})


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Two notebooks may finish a check at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with (path.parent / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _write(path: Path, data: dict[str, Any]) -> None:
    """All of it or nothing: the file that was there stays until the new one is complete."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".progress-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(data, file, indent=1, ensure_ascii=False)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
