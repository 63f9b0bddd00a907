"""The learner's folder: a copy of the course that follows the course and never overwrites a learner's work."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from grader.errors import MachineLacks

__all__ = ["FolderReport", "fill"]

_MANIFEST = Path(".grader") / "copied.json"


@dataclass(frozen=True)
class FolderReport:
    """What `fill` did; all but `folder` and `course` are paths inside of them, sorted.

    `kept` are files that the learner has changed and of which the course has a newer version.
    """

    folder: str
    course: str
    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    def to_text(self) -> str:
        """A few lines for people."""
        lines = [f"Your folder: {self.folder}"]
        if self.added:
            lines.append(f"  {_files(len(self.added))} copied from the course")
        if self.updated:
            lines.append(f"  {_files(len(self.updated))} that you had not touched brought up to date")
        for path in self.kept:
            lines.append(
                f"  {path}: you have changed it, so yours is kept; the course's newer version is {self.course}/{path}"
            )
        return "\n".join(lines)


def fill(folder: Path, course: Path) -> FolderReport:
    """Copies the course into `folder`. What the learner has changed since it was copied is left as it is.

    A file counts as untouched while its bytes are those that were copied, of which the folder keeps the hashes. A file
    that the learner has deleted is copied anew. Nothing is ever deleted.

    Raises:
        MachineLacks: there is no course to copy, or the folder cannot be written to.
    """
    folder, course = folder.expanduser().absolute(), course.expanduser().absolute()
    files = _course_files(course)
    if not files:
        raise MachineLacks(f"There are no notebooks in {course}: make them with `grader build`.")
    done: dict[str, list[str]] = {"added": [], "updated": [], "kept": [], "unchanged": []}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        copied = _read_manifest(folder)
        try:
            for path in files:
                done[_bring(path, folder, course, copied)].append(path)
        finally:  # also when interrupted, so that what was copied is known to be untouched
            _write(folder / _MANIFEST, (json.dumps(copied, indent=1, sort_keys=True) + "\n").encode())
    except OSError as error:
        raise MachineLacks(f"{error.filename or folder} cannot be written to: {error.strerror}.") from None
    return FolderReport(str(folder), str(course), **{name: tuple(paths) for name, paths in done.items()})


def _bring(path: str, folder: Path, course: Path, copied: dict[str, str]) -> str:
    """Brings one file up to date where that loses nothing, and says what was done; `copied` is kept current."""
    content = (course / path).read_bytes()
    fresh, target = _hash(content), folder / path
    if not os.path.lexists(target):
        _write(target, content)
        copied[path] = fresh
        return "added"
    if not target.is_file():
        return "kept"
    now = _hash(target.read_bytes())
    if now == fresh:
        copied[path] = fresh
        return "unchanged"
    if now == copied.get(path):
        _write(target, content)
        copied[path] = fresh
        return "updated"
    return "unchanged" if copied.get(path) == fresh else "kept"


def _course_files(course: Path) -> list[str]:
    if not course.is_dir() or not any(course.rglob("*.ipynb")):
        return []
    paths = [path.relative_to(course) for path in course.rglob("*") if path.is_file()]
    return sorted(path.as_posix() for path in paths if not any(part.startswith((".", "__")) for part in path.parts))


def _read_manifest(folder: Path) -> dict[str, str]:
    try:
        data = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # none yet, or spoilt: then nothing counts as untouched, and nothing is lost
        return {}
    return {str(path): str(value) for path, value in data.items()} if isinstance(data, dict) else {}


def _write(target: Path, content: bytes) -> None:
    """All of it or nothing: a learner may end the command at any moment."""
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        fresh.write_bytes(content)
        os.replace(fresh, target)
    finally:
        fresh.unlink(missing_ok=True)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _files(count: int) -> str:
    return f"{count} file" if count == 1 else f"{count} files"
