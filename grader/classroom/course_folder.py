"""A course folder through nbgrader's own API: where things are, what happened, and why something failed."""

from __future__ import annotations

import filecmp
import os
import re
import shlex
import shutil
import sqlite3
import sysconfig
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from grader.classroom import settings
from grader.errors import ClassroomError, UnusableSubmission
from grader.exercises import PACKAGED, found
from grader.submission.file_reading import read_notebook
from grader.words import on_one_line

_MOST_NAMED = 5  # files of a stranger's, in a sentence


def api(course: Path) -> Any:
    """nbgrader's API (`nbgrader.apps.NbGraderAPI`) on a course folder.

    Raises:
        ClassroomError: there is no course folder, or no course id in its settings.
    """
    from nbgrader.apps import NbGraderAPI

    found.use(Path(course))
    made = NbGraderAPI(config=settings.load(Path(course).expanduser()))
    if not made.course_id:
        raise ClassroomError(f"{course}/{settings.CONFIG_FILE} sets no c.CourseDirectory.course_id.")
    with _scripts_on_path():
        made.gradebook.close()  # which makes it where there is none
    return made


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


def bring_exercises(api: Any, assignment: str) -> None:
    """Copy the course's own exercises into a generated assignment that has one of them, so that learners can check."""
    own = found.exercises(PACKAGED)
    here = found.folder()
    if here is None or not any(each.chapter == assignment for each in own.values()):
        return
    target = path(api, "release", assignment) / found.FOLDER
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    for module in sorted(here.glob("*.py")):
        shutil.copyfile(module, target / module.name)


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
    if failure := why(result):
        raise ClassroomError(f"{what}: {failure}")


def why(result: Mapping[str, Any]) -> str:
    """Why nbgrader failed, in its own words, or nothing.

    Raises:
        KeyboardInterrupt: somebody pressed Ctrl-C, which nbgrader takes for a failure.
    """
    if result["success"]:
        return ""
    if (result.get("error") or "").strip().endswith("KeyboardInterrupt"):
        raise KeyboardInterrupt
    return _last_words(result)


def _last_words(result: Mapping[str, Any]) -> str:
    """Why nbgrader failed, in its own words: the last exception that it logged, else what it logged as an error."""
    log = result.get("log") or ""
    exceptions = re.findall(r"^ {4}[A-Za-z_][\w.]*: (.+)$", log, re.MULTILINE)  # a logged traceback is indented
    errors = re.findall(r"^\[(?:ERROR|CRITICAL)\] (?!Traceback|Please see|There was an error)(.+)$", log, re.MULTILINE)
    last = (result.get("error") or "unknown").strip().splitlines()[-1]
    text: str = (exceptions or errors or [last])[-1]
    return on_one_line(text).rstrip(".") + "."


@contextmanager
def rehearsal(api: Any) -> Iterator[None]:
    """Within it, what nbgrader generates goes to a scratch `release/` and to a copy of the gradebook."""
    from nbgrader.utils import temp_attrs
    from sqlalchemy.engine import make_url

    url = make_url(api.coursedir.db_url)
    with tempfile.TemporaryDirectory() as scratch, _scripts_on_path():
        copy = Path(scratch, "gradebook.db")
        if url.get_backend_name() == "sqlite" and url.database:  # another database's has no copy, and begins empty
            with closing(sqlite3.connect(url.database)) as ours, closing(sqlite3.connect(copy)) as theirs:
                ours.backup(theirs)
        with temp_attrs(api.coursedir, release_directory=f"{scratch}/release", db_url=f"sqlite:///{copy}"):
            yield


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


def graded(api: Any, assignment: str) -> set[str]:
    """Who is graded as submitted last, and to the end: nbgrader says so too of those whose grading was cut short."""
    with api.gradebook as gradebook:
        when = {each.student.id: each.timestamp for each in gradebook.assignment_submissions(assignment)}
    return {
        student
        for student in when
        if path(api, "autograded", assignment, student).is_dir()
        and timestamp(api, assignment, student) == when[student]
        and not begun(api, assignment, student).exists()
    }


def timestamp(api: Any, assignment: str, student: str) -> datetime | None:
    """When a student's work was submitted, in UTC; None where it does not say."""
    try:
        when: datetime | None = api.get_submitted_timestamp(assignment, student)
    except (ValueError, OverflowError, OSError):  # it came another way than through the exchange
        return None
    return when


def begun(api: Any, assignment: str, student: str) -> Path:
    """A file that is there while a student's work is being graded, and after a grading that was cut short."""
    return path(api, "autograded", assignment, student).with_name(f".{assignment}.begun")


def unreadable(submitted: Path) -> dict[Path, str]:
    """The notebooks of a student's that cannot be read, and why, on a line each."""
    found = {}
    for notebook in sorted(submitted.glob("*.ipynb")):
        try:
            read_notebook(notebook)
        except UnusableSubmission as error:
            found[notebook] = on_one_line(str(error))
    return found


def not_read(api: Any, assignment: str, student: str) -> str:
    """Why those of the assignment's notebooks that a student handed in unreadable are so; else nothing."""
    own = notebooks(api, assignment)
    found = unreadable(path(api, "submitted", assignment, student))
    return "; ".join(sentence for notebook, sentence in found.items() if notebook.stem in own)


def notebooks(api: Any, assignment: str) -> set[str]:
    """The names, without `.ipynb`, of an assignment's notebooks."""
    with api.gradebook as gradebook:
        return {notebook.name for notebook in gradebook.find_assignment(assignment).notebooks}


def missing(api: Any, assignment: str, student: str, others: Collection[str] = ()) -> str:
    """Which of the assignment's notebooks a student did not hand in, and what may be there instead; else nothing.

    `others`: notebooks, without `.ipynb`, that were not collected as they are not the assignment's.
    """
    known = notebooks(api, assignment)
    submitted = path(api, "submitted", assignment, student)
    there = {notebook.stem for notebook in submitted.glob("*.ipynb")} | set(others)
    if not known - there:
        return ""
    said = f"{_listed(known - there)} not handed in, so nothing in it has points"
    if not there - known:
        return f"{said}."
    return (
        f"{said}; {_listed(there - known)} none of the assignment's. If it was renamed, put it into {submitted} "
        "under its own name, and grade again with --force."
    )


def _listed(stems: set[str]) -> str:
    names = ", ".join(f"{on_one_line(name)}.ipynb" for name in sorted(stems)[:_MOST_NAMED])
    names += f" and {len(stems) - _MOST_NAMED} more" if len(stems) > _MOST_NAMED else ""
    return f"{names} {'is' if len(stems) == 1 else 'are'}"


def exchange_problems(api: Any) -> list[str]:
    """What keeps learners from the exchange, as sentences."""
    root = Path(api.exchange_root)
    if not root.is_dir():
        course = shlex.quote(api.coursedir.root)
        return [f"the exchange {root} does not exist; `grader classroom init {course}` makes it"]
    if not os.access(root, os.W_OK | os.X_OK):
        return [f"the exchange {root} cannot be written by you"]
    if root.stat().st_mode & 0o777 != 0o777:
        return [f"the exchange {root} is closed to other users: `chmod 1777 {shlex.quote(str(root))}`"]
    return []
