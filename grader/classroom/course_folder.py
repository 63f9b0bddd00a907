"""A course folder through nbgrader's API: its paths, the state of its assignments, and nbgrader's errors.

It reads the notebooks in `autograded/`, and the verdicts in their check cells.
"""

from __future__ import annotations

import filecmp
import functools
import json
import os
import re
import shlex
import shutil
import sqlite3
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from grader.classroom import settings
from grader.classroom.copying import TIMESTAMP
from grader.errors import ClassroomError, UnusableSubmission
from grader.exercises import EXERCISES, PACKAGED, found
from grader.submission.file_reading import read_notebook
from grader.verdict import Verdict
from grader.words import on_one_line

_GRADEBOOK_WAIT_S = 60  # while another program, such as the Formgrader, holds SQLite's lock; its default is 5
CHECK_PREFIX = "check-"  # the check cell of exercise `softmax` has the grade_id `check-softmax`


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
    if (url := made.coursedir.db_url).startswith("sqlite:") and "timeout=" not in url:
        made.coursedir.db_url = f"{url}{'&' if '?' in url else '?'}timeout={_GRADEBOOK_WAIT_S}"
    with _scripts_on_path():
        made.gradebook.close()  # creates a missing one
    return made


def released(course: Path, assignment: str) -> Any:
    """nbgrader's API on a course folder whose gradebook has the assignment.

    Raises:
        ClassroomError: there is no such course folder or assignment, or it was never released.
    """
    made = api(course)
    refuse_unknown(made, assignment)
    if not in_gradebook(made, assignment):
        raise ClassroomError(
            f"{assignment} is not in the gradebook yet: run `grader classroom release {shlex.quote(str(course))} "
            f"{assignment}` first."
        )
    return made


@contextmanager
def one_engine() -> Iterator[None]:
    """Let nbgrader's gradebooks share an engine, which keeps compiled SQL, and look once whether all tables exist.

    nbgrader opens some 17 gradebooks per graded student.
    """
    from nbgrader import api as gradebooks

    tables = gradebooks.Base.metadata
    engine, create = gradebooks.create_engine, tables.create_all
    gradebooks.create_engine, tables.create_all = functools.cache(engine), functools.cache(create)
    try:
        yield
    finally:
        gradebooks.create_engine, tables.create_all = engine, create


@contextmanager
def _scripts_on_path() -> Iterator[None]:
    """Let nbgrader find `alembic`, which makes a gradebook."""
    before = os.environ.get("PATH", os.defpath)
    os.environ.update(settings.scripts_path())
    try:
        yield
    finally:
        os.environ["PATH"] = before


def path(api: Any, step: str, assignment: str, student: str = ".") -> Path:
    """The folder of a student's assignment in a step: `source`, `release`, `submitted`, `autograded` or `feedback`."""
    directory = getattr(api.coursedir, f"{step}_directory")
    return Path(os.path.normpath(str(api.coursedir.format_path(directory, student, assignment))))


def outbound(api: Any, assignment: str) -> Path:
    """The folder of a released assignment in the exchange."""
    return Path(api.exchange_root, api.course_id, "outbound", assignment)


def bring_exercises(api: Any, assignment: str) -> None:
    """Copy the course's own exercises into a generated assignment that has one of them, so that learners can check."""
    here = found.folder()
    if here is None or not any(each.chapter == assignment for each in found.exercises(PACKAGED).values()):
        return
    target = path(api, "release", assignment) / found.FOLDER
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    for module in sorted(here.glob("*.py")):
        shutil.copyfile(module, target / module.name)


def refuse_unknown(api: Any, assignment: str) -> None:
    """Raise a ClassroomError unless `source/` has the assignment with a notebook."""
    known = sorted(api.get_source_assignments())
    if assignment not in known:
        raise ClassroomError(
            f"There is no assignment {assignment!r}. The assignments are: {', '.join(known) or 'none'}."
        )
    if not any(path(api, "source", assignment).glob("*.ipynb")):
        raise ClassroomError(f"There is no notebook in {path(api, 'source', assignment)}.")


def must(result: Mapping[str, Any], what: str) -> None:
    """Raise a ClassroomError with nbgrader's own message if it failed."""
    if failure := why(result):
        raise ClassroomError(f"{what}: {failure}")


def why(result: Mapping[str, Any]) -> str:
    """The last exception or error that nbgrader logged; empty if it succeeded.

    Raises:
        KeyboardInterrupt: somebody pressed Ctrl-C, which nbgrader treats as a failure.
    """
    if result["success"]:
        return ""
    error = (result.get("error") or "unknown").strip()
    if error.endswith("KeyboardInterrupt"):
        raise KeyboardInterrupt
    log = result.get("log") or ""
    exceptions = re.findall(r"^ {4}[A-Za-z_][\w.]*: (.+)$", log, re.MULTILINE)  # a logged traceback is indented
    errors = re.findall(r"^\[(?:ERROR|CRITICAL)\] (?!Traceback|Please see|There was an error)(.+)$", log, re.MULTILINE)
    text: str = (exceptions or errors or [error.splitlines()[-1]])[-1]
    return on_one_line(text).rstrip(".") + "."


@contextmanager
def rehearsal(api: Any) -> Iterator[None]:
    """A context in which nbgrader generates into a scratch `release/` and a copy of the gradebook."""
    from nbgrader.utils import temp_attrs
    from sqlalchemy.engine import make_url

    url = make_url(api.coursedir.db_url)
    with tempfile.TemporaryDirectory() as scratch, _scripts_on_path():
        copy = Path(scratch, "gradebook.db")
        if url.get_backend_name() == "sqlite" and url.database:  # other databases begin empty
            with closing(sqlite3.connect(url.database)) as ours, closing(sqlite3.connect(copy)) as theirs:
                ours.backup(theirs)
        with temp_attrs(api.coursedir, release_directory=f"{scratch}/release", db_url=f"sqlite:///{copy}"):
            yield


def differences(one: Path, other: Path) -> list[str]:
    """The sorted names of the files that differ between two folders, or that only one of them has."""
    names = {found.relative_to(base) for base in (one, other) for found in base.rglob("*") if found.is_file()}
    same, _, _ = filecmp.cmpfiles(one, other, [str(name) for name in names], shallow=False)
    return sorted({name.as_posix() for name in names}.difference(same))


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
    """Whether one of the student's check cells has no score, because the judge failed."""
    from nbgrader.api import MissingEntry

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
    """The students whose newest submission is completely graded; nbgrader also counts interrupted gradings."""
    with api.gradebook as gradebook:
        when = {each.student.id: each.timestamp for each in gradebook.assignment_submissions(assignment)}
    return {
        student
        for student in when
        if path(api, "autograded", assignment, student).is_dir()
        and timestamp(api.coursedir, assignment, student) == when[student]
        and not begun(api, assignment, student).exists()
    }


def graded_notebooks(api: Any, assignment: str, student: str) -> list[tuple[Path, dict[str, Any]]]:
    """A student's graded notebooks that can be read, as parsed JSON."""
    found = []
    for notebook in sorted(path(api, "autograded", assignment, student).glob("*.ipynb")):
        with suppress(OSError, ValueError, RecursionError):  # `autograde` reports it
            found.append((notebook, dict(json.loads(notebook.read_bytes()))))
    return found


def check_cells(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The check cells of a parsed notebook."""
    cells = []
    for cell in document.get("cells", ()):
        about = cell.get("metadata", {}).get("nbgrader", {})
        if about.get("grade") and str(about.get("grade_id", "")).startswith(CHECK_PREFIX):
            cells.append(cell)
    return cells


def verdict_in(cell: dict[str, Any]) -> Verdict | None:
    """The judge's verdict in a check cell."""
    try:
        return Verdict.from_dict(cell["metadata"]["grader"]["verdict"])
    except (KeyError, TypeError):  # not judged, or by another version of the grader
        return None


def timestamp(coursedir: Any, assignment: str, student: str) -> datetime | None:
    """When a student's collected work was submitted, in UTC; None if that is unknown."""
    from nbgrader.utils import parse_utc

    file = Path(coursedir.format_path(coursedir.submitted_directory, student, assignment), TIMESTAMP)
    try:
        when: datetime = parse_utc(file.read_text(encoding="utf-8").strip())
    except (ValueError, OverflowError, OSError):  # it did not come through the exchange
        return None
    return when


def begun(api: Any, assignment: str, student: str) -> Path:
    """A file that exists while a student's work is graded, and after a grading that was interrupted."""
    return path(api, "autograded", assignment, student).with_name(f".{assignment}.begun")


def unreadable(submitted: Path) -> dict[Path, str]:
    """The student's notebooks that cannot be read, each with the reason."""
    found = {}
    for notebook in sorted(submitted.glob("*.ipynb")):
        try:
            read_notebook(notebook)
        except UnusableSubmission as error:
            found[notebook] = on_one_line(str(error))
    return found


def not_read(api: Any, assignment: str, student: str) -> str:
    """The reasons why notebooks of the assignment cannot be read; empty if all can."""
    own = notebooks(api.coursedir, assignment)
    found = unreadable(path(api, "submitted", assignment, student))
    return "; ".join(sentence for notebook, sentence in found.items() if notebook.stem in own)


def notebooks(coursedir: Any, assignment: str) -> set[str]:
    """The names of an assignment's notebooks, without `.ipynb`."""
    from nbgrader.api import Gradebook

    with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
        return {notebook.name for notebook in gradebook.find_assignment(assignment).notebooks}


def cells_without_exercise(api: Any, assignment: str) -> dict[str, list[str]]:
    """The grade_ids of graded code cells other than exercises' check cells, by notebook. The judge does not run them.

    Raises:
        UnusableExercise: one of the course's own exercises cannot be used.
    """
    with api.gradebook as gradebook:
        by_notebook = {
            notebook.name: sorted(
                cell.name
                for cell in notebook.grade_cells
                if cell.cell_type == "code"
                and cell.name not in {each.name for each in notebook.solution_cells}
                and not (cell.name.startswith(CHECK_PREFIX) and cell.name.removeprefix(CHECK_PREFIX) in EXERCISES)
            )
            for notebook in gradebook.find_assignment(assignment).notebooks
        }
    return {f"{notebook}.ipynb": cells for notebook, cells in sorted(by_notebook.items()) if cells}


def missing(api: Any, assignment: str, student: str, others: Collection[str] = ()) -> str:
    """A message about the notebooks that a student did not submit; empty if none is missing.

    `others`: submitted notebooks, without `.ipynb`, that were not collected because they are not the assignment's.
    """
    known = notebooks(api.coursedir, assignment)
    submitted = path(api, "submitted", assignment, student)
    there = {notebook.stem for notebook in submitted.glob("*.ipynb")} | set(others)
    if not known - there:
        return ""
    message = f"Not submitted, so without points: {first_names(f'{name}.ipynb' for name in known - there)}."
    if not there - known:
        return message
    unknown = first_names(f"{name}.ipynb" for name in there - known)
    return (
        f"{message} Not part of the assignment: {unknown}. If a notebook "
        f"was renamed, put it into {submitted} under its own name, and grade again with --force."
    )


def first_names(names: Iterable[str]) -> str:
    """The first five names in alphabetical order, such as "a, b, c, d, e and 3 more"."""
    ordered = sorted(map(on_one_line, names))
    more = f" and {len(ordered) - 5} more" if len(ordered) > 5 else ""
    return ", ".join(ordered[:5]) + more


def has_exchange_folder(api: Any) -> bool:
    """Whether the configured exchange is nbgrader's own folder, and not a service such as ngshare."""
    from nbgrader.exchange.default import Exchange

    return issubclass(api.exchange.collect, Exchange)


def exchange_problems(api: Any) -> list[str]:
    """Messages about what keeps learners from using the exchange, if it is a folder."""
    if not has_exchange_folder(api):
        return []
    root = Path(api.exchange_root)
    if not root.is_dir():
        course = shlex.quote(api.coursedir.root)
        return [f"the exchange {root} does not exist; `grader classroom init {course}` creates it"]
    if not os.access(root, os.W_OK | os.X_OK):
        return [f"you cannot write to the exchange {root}"]
    if root.stat().st_mode & 0o777 != 0o777:
        return [f"the exchange {root} is closed to other users: `chmod 1777 {shlex.quote(str(root))}`"]
    return []
