"""A course folder through nbgrader's own API: where things are, what happened, and why something failed."""

from __future__ import annotations

import filecmp
import os
import re
import shutil
import sysconfig
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from grader.classroom import settings
from grader.errors import ClassroomError, UnusableSubmission
from grader.reading import read_notebook

__all__ = [
    "api",
    "collect",
    "differences",
    "exchange_problems",
    "grade",
    "in_gradebook",
    "kept_on_failure",
    "must",
    "outbound",
    "path",
    "refuse_unknown",
    "submitted_at",
    "waiting",
    "waits_for_judge",
]

_NOT_GRADED = re.compile(r"\] (\S+: not graded: .*)")  # what grader.classroom.preprocessor logs
_ENTRY = re.compile(r"(.+)\+[^+]+\+(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.\d+)? UTC(?:\+[\w-]+)?$")  # of the inbox


def api(course: Path) -> Any:
    """nbgrader's API (`nbgrader.apps.NbGraderAPI`) on a course folder.

    Raises:
        ClassroomError: there is no course folder, or no course id in its settings.
    """
    from nbgrader.apps import NbGraderAPI

    found = NbGraderAPI(config=settings.load(Path(course).expanduser()))
    if not found.course_id:
        raise ClassroomError(f"{course}/{settings.CONFIG_FILE} sets no c.CourseDirectory.course_id.")
    with _scripts_on_path():
        found.gradebook.close()  # which makes it where there is none
    return found


@contextmanager
def _scripts_on_path() -> Iterator[None]:
    """nbgrader runs `alembic` by its bare name when it makes a gradebook; a virtual environment may not be active."""
    before = os.environ.get("PATH", os.defpath)
    os.environ["PATH"] = os.pathsep.join([sysconfig.get_path("scripts"), before])
    try:
        yield
    finally:
        os.environ["PATH"] = before


def path(api: Any, step: str, assignment: str, student: str = ".") -> Path:
    """Where a step (`source`, `release`, `submitted`, `autograded`, `feedback`) keeps a student's assignment."""
    directory = getattr(api.coursedir, f"{step}_directory")
    return Path(os.path.normpath(str(api.coursedir.format_path(directory, student, assignment))))


def outbound(api: Any, assignment: str) -> Path:
    """Where the exchange keeps a released assignment."""
    return Path(api.exchange_root, api.course_id, "outbound", assignment)


def refuse_unknown(api: Any, assignment: str) -> None:
    """Raise a ClassroomError that lists what there is, unless `source/` holds the assignment with a notebook."""
    known = sorted(api.get_source_assignments())
    if assignment not in known:
        raise ClassroomError(
            f"There is no assignment {assignment!r}. The assignments are: {', '.join(known) or 'none'}."
        )
    if not any(path(api, "source", assignment).glob("*.ipynb")):
        raise ClassroomError(f"There is no notebook in {path(api, 'source', assignment)}.")


def must(result: Mapping[str, Any], what: str) -> None:
    """Raise a ClassroomError with nbgrader's own words, unless it did what it was asked to."""
    if not result["success"]:
        raise ClassroomError(f"{what}: {_last_words(result)}")


def _last_words(result: Mapping[str, Any]) -> str:
    """Why nbgrader failed, in its own words: the last exception that it logged, else what it logged as an error."""
    log = result.get("log") or ""
    exceptions = re.findall(r"^ {4}[A-Za-z_][\w.]*: (.+)$", log, re.MULTILINE)  # a logged traceback is indented
    errors = re.findall(r"^\[(?:ERROR|CRITICAL)\] (?!Traceback|Please see|There was an error)(.+)$", log, re.MULTILINE)
    last = (result.get("error") or "unknown").strip().splitlines()[-1]
    text: str = (exceptions or errors or [last])[-1]
    return text.strip().rstrip(".") + "."


@contextmanager
def kept_on_failure(folder: Path) -> Iterator[None]:
    """Put a folder back as it was if what is done inside fails: nbgrader removes it first."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "copy"
        if folder.is_dir():
            shutil.copytree(folder, copy)
        try:
            yield
        except BaseException:
            if copy.is_dir():
                shutil.rmtree(folder, ignore_errors=True)
                shutil.copytree(copy, folder)
            raise


def differences(one: Path, other: Path) -> list[str]:
    """The names of the files that only one of two folders holds, or that differ, sorted."""
    names = {found.relative_to(base) for base in (one, other) for found in base.rglob("*") if found.is_file()}
    same = [n for n in names if (one / n).is_file() and (other / n).is_file() and _same(one / n, other / n)]
    return sorted(name.as_posix() for name in names.difference(same))


def _same(one: Path, other: Path) -> bool:
    return filecmp.cmp(one, other, shallow=False)


def in_gradebook(api: Any, assignment: str) -> bool:
    """Whether the assignment was ever generated."""
    from nbgrader.api import MissingEntry

    with api.gradebook as gradebook:
        try:
            gradebook.find_assignment(assignment)
        except MissingEntry:
            return False
    return True


def submitted_at(api: Any, assignment: str, student: str) -> str:
    """When it was submitted, ISO 8601 in UTC; nothing where the submission does not say."""
    try:
        when = api.get_submitted_timestamp(assignment, student)
    except (ValueError, OverflowError, OSError):  # the file is the student's
        return ""
    return f"{when.isoformat(timespec='seconds')}Z" if when else ""


def collect(api: Any, assignment: str) -> int:
    """Fetch new and newer submissions from the exchange; how many there were.

    Raises:
        ClassroomError: nbgrader could not, as where anyone has put something else among the submissions.
    """
    for entry in _inbound(api, assignment):
        if not _ENTRY.match(entry.name):
            raise ClassroomError(f"{entry} is no submission, and nbgrader collects nothing beside it: remove it.")
    if not (Path(api.exchange_root) / api.course_id / "inbound").is_dir():
        return 0  # never released here: what lies in submitted/ came another way
    before = {name: submitted_at(api, assignment, name) for name in api.get_submitted_students(assignment)}
    must(api.collect(assignment, update=True), f"{assignment} cannot be collected")
    after = {name: submitted_at(api, assignment, name) for name in api.get_submitted_students(assignment)}
    return sum(before.get(name) != when for name, when in after.items())


def waiting(api: Any, assignment: str) -> int:
    """How many students have submitted to the exchange what was not collected."""
    collected = {name: submitted_at(api, assignment, name) for name in api.get_submitted_students(assignment)}
    newest: dict[str, str] = {}
    for match in filter(None, (_ENTRY.match(entry.name) for entry in _inbound(api, assignment))):
        newest[match[1]] = max(newest.get(match[1], ""), f"{match[2]}T{match[3]}Z")
    return sum(collected.get(student, "") < when for student, when in newest.items())


def _inbound(api: Any, assignment: str) -> list[Path]:
    inbound = Path(api.exchange_root) / api.course_id / "inbound"
    return sorted(inbound.glob(f"*+{assignment}+*")) if os.access(inbound, os.R_OK | os.X_OK) else []


def waits_for_judge(api: Any, assignment: str, student: str) -> bool:
    """Whether a check cell of the student's has no score, as is so where the judge failed."""
    from nbgrader.api import MissingEntry

    from grader.classroom.preprocessor import CHECK_PREFIX

    with api.gradebook as gradebook:
        try:
            notebooks = gradebook.find_submission(assignment, student).notebooks
        except MissingEntry:
            return True
        return any(
            grade.auto_score is None and grade.manual_score is None and grade.name.startswith(CHECK_PREFIX)
            for notebook in notebooks
            for grade in notebook.grades
        )


def grade(api: Any, assignment: str, student: str) -> str:
    """Autograde one student's work; why it could not be graded in full, or nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of nbformat about the learner's file, of SQLAlchemy 2.1 about nbgrader 0.9.6
        result = api.autograde(assignment, student, force=True)
    if result["success"]:
        return "; ".join(_NOT_GRADED.findall(result.get("log") or ""))
    for notebook in sorted(path(api, "submitted", assignment, student).glob("*.ipynb")):
        try:
            read_notebook(notebook)
        except UnusableSubmission as error:
            return str(error)
    return _last_words(result)


def exchange_problems(api: Any) -> list[str]:
    """What keeps learners from the exchange, as sentences."""
    root = Path(api.exchange_root)
    if not root.is_dir():
        return [f"the exchange {root} does not exist; `grader classroom init {api.coursedir.root}` makes it"]
    if not os.access(root, os.W_OK | os.X_OK):
        return [f"the exchange {root} cannot be written by you"]
    if root.stat().st_mode & 0o777 != 0o777:
        return [f"the exchange {root} is closed to other users: `chmod 1777 {root}`"]
    return []
