"""The `grader leaderboard` commands, and a notebook's `standings`: measure a course, publish the site, show it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from grader.errors import GraderError
from grader.exercises import EXERCISES, find, found
from grader.leaderboard.site import PublishReport, as_text, page
from grader.leaderboard.site import publish as publish_store
from grader.leaderboard.standings import MADE_BY, Board, boards, from_json

if TYPE_CHECKING:
    from grader.leaderboard.board_run import Deadline, RunOutcome
    from grader.verdict import Progress

SOURCE_VARIABLE = "GRADER_LEADERBOARD"
STORE_NAME = "leaderboard.sqlite"
_STANDINGS = "standings.json"
_MOST_BYTES = 50_000_000


@dataclass(frozen=True)
class View:
    """Standings as HTML and text, or a `message` that says why there are none.

    `names`, from pseudonym to student, is for the instructor only: text and `to_dict` show it, HTML never.
    """

    exercise: str
    boards: tuple[Board, ...]
    message: str = ""
    names: Mapping[str, str] = field(default_factory=dict)

    def _repr_html_(self) -> str:
        return page("notebook", boards=self.boards, message=self.message)

    def __str__(self) -> str:
        return as_text(self.boards, self.message, self.names)

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for `json.dumps`."""
        data: dict[str, Any] = {"made_by": MADE_BY, "exercise": self.exercise, "message": self.message}
        data["boards"] = [board.to_dict() for board in self.boards]
        return {**data, "names": dict(self.names)} if self.names else data


def run(
    exercise_id: str,
    course: Path | str = ".",
    store: Path | str | None = None,
    device: Literal["auto", "cuda", "simulator"] = "auto",
    sandbox: bool = True,
    practice_clock: bool = False,
    progress: Progress | None = None,
    deadline: Deadline | None = None,
) -> RunOutcome:
    """Measure a course's submissions of an exercise into `store`, by default `leaderboard.sqlite` in the course folder.

    Without `sandbox` a submission can do on this machine whatever its user can. With `practice_clock` its times count,
    which a submission can falsify. The board counts the `deadline`, if there is one.

    Raises:
        GraderError: no such exercise or submission, or the store or the machine cannot be used.
    """
    from grader.judge.sandbox import must_be_caged
    from grader.judge.service import Judge
    from grader.leaderboard.board_run import Deadline, handed_in
    from grader.leaderboard.board_run import run as run_submissions
    from grader.leaderboard.store import Store

    course = Path(course)
    found.use(course)
    exercise = find(exercise_id)
    if sandbox:
        must_be_caged()
    handed_in(course, exercise)  # before creating a store in the wrong place
    with Store(store or course / STORE_NAME) as opened, Judge(device, sandbox=sandbox) as judge:
        counted = deadline or Deadline()
        return run_submissions(exercise_id, course, opened, judge, progress, practice_clock, counted)


def with_submissions(course: Path | str) -> list[str]:
    """The timed exercises with submissions in a course.

    Raises:
        GraderError: there is none.
    """
    from grader.leaderboard.board_run import handed_in

    course, found_ids = Path(course), []
    found.use(course)
    for exercise in EXERCISES.values():
        if exercise.timed_cases:
            with contextlib.suppress(GraderError):
                found_ids += [exercise.id] if handed_in(course, exercise) else []
    if not found_ids:
        raise GraderError(f"There is no submission of a timed exercise in {course}.")
    return found_ids


def publish(dest: Path | str, store: Path | str | None = None, notes: bool = False) -> PublishReport:
    """Write the site of `store`, by default `leaderboard.sqlite` in this folder, to `dest`; `notes` as site.publish.

    Raises:
        GraderError: there is no such store, or `dest` cannot be written.
    """
    _use_course_of(store)
    from grader.leaderboard.store import Store  # loads SQLAlchemy

    with Store(store or STORE_NAME, create=False) as opened:
        return publish_store(opened, dest, notes)


def standings(exercise_id: str, source: Path | str | None = None) -> View:
    """The standings of an exercise, from a published folder, its `standings.json`, or a store.

    Without `source`, the environment variable GRADER_LEADERBOARD gives the path, or the file is in this folder.

    Raises:
        UnknownExercise: no exercise has this id.
        GraderError: `source` cannot be read, or has no standings.
    """
    title = find(exercise_id).title
    path = _source(source)
    if path is None:
        message = (
            f"No standings were found. Ask your instructor where they are published, and give that folder, as in "
            f"standings({exercise_id}, '/path/to/folder'), or set {SOURCE_VARIABLE} to it."
        )
        return View(exercise_id, (), message)
    found = tuple(board for board in _read(path, exercise_id) if board.exercise == exercise_id)
    return View(exercise_id, found, "" if found else f"{title} has no standings yet: no submission has been measured.")


def _source(source: Path | str | None) -> Path | None:
    named = source or os.environ.get(SOURCE_VARIABLE)
    if named:
        return Path(named).expanduser()
    return next((Path(name) for name in (STORE_NAME, _STANDINGS) if Path(name).is_file()), None)


def _read(path: Path, exercise_id: str) -> list[Board]:
    if path.is_dir():
        path = path / _STANDINGS
    try:
        with path.open("rb") as file:
            if file.read(6) == b"SQLite":
                from grader.leaderboard.store import Store

                with Store(path, create=False) as store:
                    return boards(store, exercise_id)
            file.seek(0)
            data = file.read(_MOST_BYTES)
    except OSError as error:
        raise GraderError(f"The standings in {path} cannot be read: {error.strerror or error}.") from None
    return from_json(data.decode("utf-8", "replace"), path)


def show(exercise_id: str, store: Path | str | None = None, names: bool = False) -> View:
    """The standings of an exercise in `store`, by default `leaderboard.sqlite` in this folder.

    `names` adds the students' names, for the instructor only.

    Raises:
        GraderError: no such exercise, or no such store.
    """
    _use_course_of(store)
    find(exercise_id)
    from grader.leaderboard.store import Store

    with Store(store or STORE_NAME, create=False) as opened:
        view = standings(exercise_id, opened.path)
        shown = {row.pseudonym for board in view.boards for row in board.rows}
        shown |= {entry.pseudonym for board in view.boards for entry in board.unranked}
        kept = opened.pseudonyms().items() if names else ()
        students = {name: student for student, name in kept if name in shown}
    return replace(view, names=students)


def _use_course_of(store: Path | str | None) -> None:
    """Load the course's own exercises, from the folder of `store`."""
    found.use(Path(store or STORE_NAME).expanduser().absolute().parent)
