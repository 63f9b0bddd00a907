"""Solved notebooks for learners, once nobody may hand in any more."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from grader.authoring.stubs import without_markers
from grader.classroom import course_folder as folder
from grader.classroom.answers import Result
from grader.errors import ClassroomError

_SUFFIX = "-solutions"
_READABLE = 0o755


@dataclass(frozen=True)
class SolutionsResult(Result):
    """Where the solved notebooks are. `name` is the assignment under which learners fetch them."""

    assignment: str
    name: str
    path: str
    notebooks: tuple[str, ...]

    def to_text(self) -> str:
        return f"Learners can fetch {', '.join(self.notebooks)} with solutions as {self.name} ({self.path})."


def release_solutions(course: Path, assignment: str, *, early: bool = False) -> SolutionsResult:
    """Put the solved notebooks into the exchange, as an assignment of their own, which learners fetch as usual.

    Earlier solutions of this assignment are replaced. `early` does not wait for the due date and the extensions.

    Raises:
        ClassroomError: no such assignment, it was never released, somebody may still hand in, or the solutions' name is
            that of another assignment.
    """
    api = folder.released(course, assignment)
    if not early and (why := _too_early(api, assignment)):
        raise ClassroomError(f"{why} `--early` does not wait.")
    target = folder.outbound(api, assignment + _SUFFIX)
    if folder.in_gradebook(api, target.name):
        raise ClassroomError(f"{target.name} is an assignment itself, which the solutions would replace: rename it.")
    if not target.parent.is_dir():
        raise ClassroomError(f"{assignment} is not in the exchange: release it first.")
    scratch = target.with_name(f".{target.name}.new")
    shutil.rmtree(scratch, ignore_errors=True)
    source = folder.path(api, "source", assignment)
    shutil.copytree(source, scratch, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    notebooks = sorted(scratch.glob("*.ipynb"))
    for notebook in notebooks:
        notebook.write_text(_solved(notebook.read_text(encoding="utf-8")), encoding="utf-8")
    for path in (scratch, *scratch.rglob("*")):
        os.chmod(path, path.stat().st_mode & 0o700 | (_READABLE if path.is_dir() else 0o644))
    shutil.rmtree(target, ignore_errors=True)
    scratch.rename(target)
    return SolutionsResult(assignment, target.name, str(target), tuple(path.name for path in notebooks))


def _too_early(api: Any, assignment: str) -> str:
    """Why solutions must wait; empty if the due date and all extensions have passed."""
    with api.gradebook as gradebook:
        due = gradebook.find_assignment(assignment).duedate
        extensions = [each.extension for each in gradebook.assignment_submissions(assignment)]
    if due is None:
        return f"{assignment} has no due date, so students may still hand in."
    last = due + max(filter(None, extensions), default=timedelta(0))
    if datetime.now(UTC).replace(tzinfo=None) >= last:
        return ""
    return f"Students may hand in {assignment} until {last:%Y-%m-%d %H:%M} UTC."


def _solved(text: str) -> str:
    """A notebook with its solutions, and without nbgrader's marks, which would make it an assignment to validate."""
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        cell["source"] = without_markers("".join(cell["source"]))
        cell["metadata"].pop("nbgrader", None)
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
