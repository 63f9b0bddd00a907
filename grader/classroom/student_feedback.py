"""A student's feedback: nbgrader's pages, and nothing that the student put beside them."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Collection
from pathlib import Path
from typing import Any

from grader.classroom.copying import SECRET, TIMESTAMP, remove_all_but
from grader.classroom.course_folder import notebooks, path, unreadable, why
from grader.feedback.report import page_without_grades
from grader.words import on_one_line

_IS_SECRET = re.compile(rb"[A-Za-z0-9_-]{16,300}")  # nbgrader's own are 128 hexadecimal digits


def write_feedback(api: Any, assignment: str, student: str, *, release: bool) -> str | None:
    """Write a student's feedback and, with `release`, put it into the exchange.

    Of a notebook that is missing or could not be read there is a page that says so, under the name of the others.

    Returns:
        What kept it from that, or nothing; None where there is no feedback, as nothing could be graded for reasons that
        are not the learner's.
    """
    made = path(api, "feedback", assignment, student)
    autograded = path(api, "autograded", assignment, student)
    own = {name: (autograded / f"{name}.ipynb").is_file() for name in notebooks(api, assignment)}
    pages = _pages_without_grades(api, assignment, student, {name for name, graded in own.items() if not graded})
    if autograded.is_dir():
        if failure := why(api.generate_feedback(assignment, student)):
            return f"the feedback cannot be written: {failure}"
    elif not pages:
        return None
    kept = {TIMESTAMP, SECRET, *(f"{name}.html" for name, graded in own.items() if graded)}
    try:
        made.mkdir(parents=True, exist_ok=True)
        if not autograded.is_dir():
            _copy_what_came_along(path(api, "submitted", assignment, student), made)
        remove_all_but(made, kept)
        for name, text in pages.items():
            (made / name).write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        return on_one_line(f"the feedback is not released, as it cannot be written to {made}: {error}")
    if not release:
        return ""
    if not _is_secret(made / SECRET):
        return on_one_line(
            f"the feedback is not released: this work has no {SECRET}, by which a learner gets it from the exchange, "
            f"as is so where it came another way; hand over {made} yourself"
        )
    failure = why(api.release_feedback(assignment, student))
    return failure and f"the feedback cannot be released: {failure}"


def _pages_without_grades(api: Any, assignment: str, student: str, names: Collection[str]) -> dict[str, str]:
    """By file name, for those of these notebooks that are not there or cannot be read."""
    submitted = path(api, "submitted", assignment, student)
    said = {
        file.stem: sentence.replace(on_one_line(str(file)), file.name)  # where the course lies is no learner's business
        for file, sentence in unreadable(submitted).items()
    }
    for name in names:
        if not (submitted / f"{name}.ipynb").exists():
            said[name] = f"There was no `{name}.ipynb` in what you submitted."
    return {f"{name}.html": page_without_grades(f"{name}.ipynb", said[name]) for name in sorted(names) if name in said}


def _copy_what_came_along(submitted: Path, made: Path) -> None:
    """What names the pages in the exchange; nbgrader copies it where it has graded something."""
    for name in (TIMESTAMP, SECRET):
        if (submitted / name).is_file():
            (made / name).unlink(missing_ok=True)
            shutil.copyfile(submitted / name, made / name, follow_symlinks=False)


def _is_secret(file: Path) -> bool:
    """Whether a file holds what nobody guesses: it names the pages in the exchange, where anyone may look for them."""
    try:
        with open(
            file, "rb", opener=lambda name, _: os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        ) as opened:
            if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
                return False
            return _IS_SECRET.fullmatch(opened.read(301)) is not None
    except OSError:
        return False
