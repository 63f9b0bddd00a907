"""A student's feedback: nbgrader's pages, and nothing that the student put beside them."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Any

from grader.classroom.copying import SECRET, TIMESTAMP, remove_all_but
from grader.classroom.course import notebooks, path, why
from grader.feedback.words import on_one_line

__all__ = ["write_feedback"]

_IS_SECRET = re.compile(rb"[A-Za-z0-9_-]{16,300}")  # nbgrader's own are 128 hexadecimal digits


def write_feedback(api: Any, assignment: str, student: str, *, release: bool) -> str:
    """Write a student's feedback and, with `release`, put it into the exchange; what kept it from that, or nothing."""
    if failure := why(api.generate_feedback(assignment, student)):
        return f"the feedback cannot be written: {failure}"
    made = path(api, "feedback", assignment, student)
    autograded = path(api, "autograded", assignment, student)
    own = {name for name in notebooks(api, assignment) if (autograded / f"{name}.ipynb").is_file()}
    try:
        remove_all_but(made, {TIMESTAMP, SECRET, *(f"{name}.html" for name in own)})
    except OSError as error:
        return on_one_line(
            f"the feedback is not released, as what was handed in cannot be removed from {made}: {error}"
        )
    if not release:
        return ""
    if not _is_secret(made / SECRET):
        return on_one_line(
            f"the feedback is not released: this work has no {SECRET}, by which a learner gets it from the exchange, "
            f"as is so where it came another way; hand over {made} yourself"
        )
    failure = why(api.release_feedback(assignment, student))
    return failure and f"the feedback cannot be released: {failure}"


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
