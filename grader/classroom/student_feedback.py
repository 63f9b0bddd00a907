"""A student's feedback pages: nbgrader's own, and pages for notebooks that were not graded.

A summary of the student's chapter, above the notebook, says what to do next.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import multiprocessing
import os
import re
import shutil
import signal
import stat
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup
from traitlets import Unicode

from grader.authoring.offline_page import OfflinePage
from grader.classroom import course_folder
from grader.classroom.copying import SECRET, TIMESTAMP, remove_all_but
from grader.classroom.course_folder import has_exchange_folder, notebooks, path, unreadable, why
from grader.classroom.term.board_names import published_name
from grader.exercises import EXERCISES
from grader.feedback.report import page_without_grades
from grader.verdict import Progress
from grader.version import __version__
from grader.words import on_one_line, points

_TEMPLATES = Path(__file__).parent / "templates"
_SHOWN = ".shown"  # in a folder of pages: a hash of what they show, and whether they are in the exchange
_IS_SECRET = re.compile(rb"[A-Za-z0-9_-]{16,300}")  # nbgrader's own has 128 hexadecimal digits
_MOST_PROCESSES = 8
_STUDENTS_PER_PROCESS = 8  # a process starts in 3 s, as long as some four pages take
_PR_SET_PDEATHSIG = 1


def write_all(
    api: Any, assignment: str, students: Sequence[str], *, release: bool, progress: Progress
) -> dict[str, str | None]:  # fmt: skip
    """Write the feedback of many students side by side, on all cores.

    Returns:
        The results of `write_feedback` by student.
    """
    processes = min(_MOST_PROCESSES, len(os.sched_getaffinity(0)), len(students) // _STUDENTS_PER_PROCESS)
    problems = {}
    with contextlib.ExitStack() as stack:
        results: Iterator[str | None]
        if processes > 1:
            if release:
                _make_exchange_folder(api)
            start = multiprocessing.get_context("spawn")  # not a fork: this process may have threads
            pool = stack.enter_context(ProcessPoolExecutor(processes, start, _end_with_parent))
            stack.callback(pool.shutdown, cancel_futures=True)  # an error or Ctrl-C waits for no more students
            results = pool.map(functools.partial(_write, Path(api.coursedir.root), assignment, release), students)
        else:
            results = _one_by_one(api, assignment, students, release)
        for number, name in enumerate(students):
            progress(f"writing feedback for {name}", number, len(students))
            try:
                problems[name] = next(results)
            except BrokenProcessPool:  # such as for lack of memory: this process alone writes the rest
                results = _one_by_one(api, assignment, students[number:], release)
                problems[name] = next(results)
    return problems


def _one_by_one(api: Any, assignment: str, students: Sequence[str], release: bool) -> Iterator[str | None]:
    return (write_feedback(api, assignment, name, release=release) for name in students)


def _make_exchange_folder(api: Any) -> None:
    """Make the folder of released pages: of processes that release at once, each would, and all but one fail."""
    from nbgrader.exchange import ExchangeError

    root = Path(api.exchange_root)
    if has_exchange_folder(api) and root.is_dir() and not (root / api.course_id / "feedback").is_dir():
        with contextlib.suppress(ExchangeError, OSError):  # each release says why
            api.exchange.ReleaseFeedback(coursedir=api.coursedir, parent=api).init_dest()


def _end_with_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends this process
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _write(course: Path, assignment: str, release: bool, student: str) -> str | None:
    with course_folder.one_engine():
        return write_feedback(_api(course), assignment, student, release=release)


_api = functools.cache(course_folder.api)


def write_feedback(api: Any, assignment: str, student: str, *, release: bool) -> str | None:
    """Write a student's feedback and, with `release`, put it into the exchange.

    Pages that would not change are left alone. A missing or unreadable notebook gets a page that says so. Files that
    the student added are removed.

    Returns:
        A message if that failed, otherwise an empty string; None if the grader failed, so that there is no feedback.
    """
    made = path(api, "feedback", assignment, student)
    autograded = path(api, "autograded", assignment, student)
    own = {name: (autograded / f"{name}.ipynb").is_file() for name in notebooks(api.coursedir, assignment)}
    not_graded = {name for name, graded in own.items() if not graded}
    api.config.FeedbackPage.chapter = str(chapter_summary(api, assignment, student, not_graded))
    pages = _pages_without_grades(api, assignment, student, not_graded)
    if not autograded.is_dir() and not pages:
        return None
    shown, last = _shown(api, assignment, student, pages), _read(made / _SHOWN)
    if (last == [shown, "released"] and _are_in_exchange(api, made)) or (not release and last == [shown]):
        return ""
    if autograded.is_dir() and (failure := why(api.generate_feedback(assignment, student))):
        return f"the feedback cannot be written: {failure}"
    kept = {TIMESTAMP, SECRET, *(f"{name}.html" for name, graded in own.items() if graded)}
    try:
        made.mkdir(parents=True, exist_ok=True)
        if not autograded.is_dir():
            _copy_submission_files(path(api, "submitted", assignment, student), made)
        remove_all_but(made, kept)
        for name, text in pages.items():
            (made / name).write_text(text, encoding="utf-8", errors="replace")
        if not release:
            (made / _SHOWN).write_text(shown, encoding="utf-8")
    except OSError as error:
        return on_one_line(f"the feedback is not released, because it cannot be written to {made}: {error}")
    if not release:
        return ""
    if not _is_secret(made / SECRET):
        return on_one_line(
            f"the feedback is not released: this work has no {SECRET}, which names it in the exchange, because it was "
            f"not collected from there; send {made} to the student yourself"
        )
    if failure := why(api.release_feedback(assignment, student)):
        return f"the feedback cannot be released: {failure}"
    with contextlib.suppress(OSError):  # the next run releases them again
        (made / _SHOWN).write_text(f"{shown} released", encoding="utf-8")
    return ""


def _shown(api: Any, assignment: str, student: str, pages: dict[str, str]) -> str:
    """A hash of everything that a student's pages show, and of where they are released."""
    from nbgrader.api import MissingEntry

    known: list[Any] = [__version__, api.exchange_root, api.config.FeedbackPage.chapter, sorted(pages.items())]
    with api.gradebook as gradebook:
        try:
            for notebook in gradebook.find_submission(assignment, student).notebooks:
                known += [(notebook.name, grade.name, grade.score, grade.max_score) for grade in notebook.grades]
                known += [(notebook.name, comment.name, comment.comment) for comment in notebook.comments]
        except MissingEntry:
            pass
    digest = hashlib.sha256(repr(known).encode("utf-8", "backslashreplace"))
    for step in ("submitted", "autograded"):
        here = path(api, step, assignment, student)
        for file in (here / TIMESTAMP, here / SECRET, *(sorted(here.glob("*.ipynb")) if step == "autograded" else ())):
            if file.is_file() and not file.is_symlink():
                digest.update(file.read_bytes())
    return digest.hexdigest()


def _read(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8", errors="replace").split()
    except OSError:  # it is missing or damaged: the feedback is written again
        return []


def _are_in_exchange(api: Any, made: Path) -> bool:
    """Whether the exchange still has the released pages; true if it is not a folder."""
    from nbgrader.utils import notebook_hash

    if not has_exchange_folder(api):
        return True
    released = Path(api.exchange_root, api.course_id, "feedback")
    try:
        secret = (made / SECRET).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    names = [notebook_hash(secret=secret, notebook_id=page.stem) for page in made.glob("*.html")]
    return all((released / f"{name}.html").is_file() for name in names)


def _pages_without_grades(api: Any, assignment: str, student: str, names: Collection[str]) -> dict[str, str]:
    """Pages, by file name, for the given notebooks that are missing or cannot be read."""
    submitted = path(api, "submitted", assignment, student)
    reasons = {
        file.stem: sentence.replace(on_one_line(str(file)), file.name)  # learners need not see the course's path
        for file, sentence in unreadable(submitted).items()
    }
    for name in names:
        if not (submitted / f"{name}.ipynb").exists():
            reasons[name] = f"Your submission had no `{name}.ipynb`."
    chapter = api.config.FeedbackPage.chapter
    return {f"{n}.html": page_without_grades(f"{n}.ipynb", reasons[n], chapter) for n in sorted(names) if n in reasons}


def _copy_submission_files(submitted: Path, made: Path) -> None:
    """Copy the files that name the pages in the exchange, as nbgrader does after grading."""
    for name in (TIMESTAMP, SECRET):
        if (submitted / name).is_file():
            (made / name).unlink(missing_ok=True)
            shutil.copyfile(submitted / name, made / name, follow_symlinks=False)


def _is_secret(file: Path) -> bool:
    """Whether a file has a secret that nobody can guess: it names the pages in the exchange, where anyone can look."""
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        with open(file, "rb", opener=lambda name, _: os.open(name, flags)) as opened:
            is_file = stat.S_ISREG(os.fstat(opened.fileno()).st_mode)
            return is_file and _IS_SECRET.fullmatch(opened.read(301)) is not None
    except OSError:
        return False


class FeedbackPage(OfflinePage):
    """nbgrader's exporter for feedback, in this project's template. `chapter` is the HTML of the summary."""

    chapter = Unicode("").tag(config=True)

    def from_notebook_node(  # type: ignore[override]
        self, nb: Any, resources: dict[str, Any] | None = None, **kw: Any
    ) -> tuple[str, dict[str, Any]]:
        """The page's text, and nbconvert's resources."""
        return super().from_notebook_node(nb, {**(resources or {}), "chapter": Markup(self.chapter)}, **kw)

    def default_filters(self) -> Any:
        """nbconvert's filters, and those of the template."""
        yield from super().default_filters()  # type: ignore[no-untyped-call]
        yield "points", _points
        yield "graded_name", _graded_name


@dataclass(frozen=True)
class _Row:
    name: str
    points: float
    most: float
    advice: str
    has_page: bool


def chapter_summary(api: Any, assignment: str, student: str, without_grades: Collection[str]) -> Markup:
    """The HTML of a student's points in an assignment, notebook by notebook, and the student's name on the boards.

    `without_grades`: the notebooks that were not handed in or cannot be read, by name.
    """
    from nbgrader.api import MissingEntry

    with api.gradebook as gradebook:
        most = {each.name: each.max_score for each in gradebook.find_assignment(assignment).notebooks}
        try:
            graded = {each.name: each for each in gradebook.find_submission(assignment, student).notebooks}
        except MissingEntry:
            graded = {}
        rows, penalty = [], 0.0
        for name in sorted(most):
            own = None if name in without_grades else graded.get(name)
            lost = float(own.late_submission_penalty or 0.0) if own is not None else 0.0
            got = float(own.score) - lost if own is not None else 0.0
            penalty += lost
            advice = _advice(own, name in without_grades)
            rows.append(_Row(name, got, most[name], advice, own is not None or name in without_grades))
    return Markup(
        _template().render(
            assignment=assignment, rows=rows, penalty=penalty, total=sum(row.points for row in rows),
            most=sum(row.most for row in rows), board_name=published_name(Path(api.coursedir.root), student),
        )
    )  # fmt: skip


def _advice(own: Any | None, without_grades: bool) -> str:
    """The next step for a notebook; `own` is its entry in the gradebook."""
    if without_grades or own is None:
        return "Not graded: its page says why. Hand in the notebook under this name."
    if own.needs_manual_grade:
        return "Your instructor will grade a part of it."
    if own.score >= own.max_score:
        return "Nothing: it has all points." if own.max_score else "Nothing: it has no exercises for points."
    return "Open its page: each report says what to fix first."


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["points"] = _points
    return environment.get_template("chapter.html.j2")


def _points(value: float | None) -> str:
    return points(float(value or 0.0))


def _graded_name(grade_id: str) -> str:
    """The title of the exercise of a check cell; other cells keep their grade_id."""
    exercise = EXERCISES.get(grade_id.removeprefix(course_folder.CHECK_PREFIX))
    return exercise.title if exercise is not None else grade_id
