"""What was handed in, where, by whom; and how a stranger's name for it is kept as text."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path

from grader.errors import GraderError, UnusableSubmission
from grader.exercise import Exercise

__all__ = ["Handed", "handed_in", "must_be_a_file", "text_of"]

_COURSE_FILE = "nbgrader_config.py"  # in nbgrader's course folders, and no submission


@dataclass(frozen=True)
class Handed:
    """What a student handed in for an exercise: a file, which may be missing, or be none."""

    student: str
    path: Path


def handed_in(course: Path, exercise: Exercise) -> list[Handed]:
    """What was handed in, by student: nbgrader's `submitted/<student>/<chapter>/<notebook>.ipynb` under `course`, or,
    where there is no `submitted` folder, `<student>.py` in `course` itself.

    Raises:
        GraderError: there is no such folder, or nothing was handed in.
    """
    if not course.is_dir():
        raise GraderError(f"There is no folder {course}; name the course's folder with --course.")
    submitted = course / "submitted"
    if submitted.is_dir():
        folders = sorted(path for path in submitted.glob(f"*/{exercise.chapter}") if path.is_dir())
        found = [Handed(text_of(folder.parent.name), folder / f"{exercise.notebook}.ipynb") for folder in folders]
    elif (course / _COURSE_FILE).exists():
        found = []
    else:
        found = [Handed(text_of(path.stem), path) for path in sorted(course.glob("*.py"))]
    if not found:
        raise GraderError(
            f"Nobody has handed in {exercise.id!r} in {course}: there is neither a folder "
            f"submitted/<student>/{exercise.chapter} (`grader classroom autograde` fills it) nor a file "
            "<student>.py."
        )
    return found


def must_be_a_file(path: Path) -> None:
    """Holds what is there to a regular file: a link may lead to another's work, or to what only its reader may read.

    Raises:
        UnusableSubmission: it is a link, or no file. One that is missing passes: the reading says so.
    """
    try:
        mode = path.lstat().st_mode
    except OSError:
        return
    if stat.S_ISLNK(mode):
        raise UnusableSubmission(f"{path} is a link, and links are not followed: hand in the file itself.")
    if not stat.S_ISREG(mode):
        raise UnusableSubmission(f"{path} is not a regular file.")


def text_of(name: object) -> str:
    """A file's name as text that a database can hold, also where it is not UTF-8; of two names, two texts."""
    return str(name).replace("\\", "\\\\").encode("utf-8", "backslashreplace").decode()
