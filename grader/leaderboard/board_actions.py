"""The `grader leaderboard` commands: measure a course, publish the site, show the standings."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from grader.errors import GraderError
from grader.exercises import EXERCISES, find, found

if TYPE_CHECKING:
    from grader.leaderboard.board_run import Deadline, RunOutcome
    from grader.leaderboard.site import PublishReport
    from grader.leaderboard.standings_view import View
    from grader.verdict import Progress

STORE_NAME = "leaderboard.sqlite"


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
    from grader.leaderboard.site import publish as publish_store
    from grader.leaderboard.store import Store

    with Store(store or STORE_NAME, create=False) as opened:
        return publish_store(opened, dest, notes)


def show(exercise_id: str, store: Path | str | None = None, names: bool = False) -> View:
    """The standings of an exercise in `store`, by default `leaderboard.sqlite` in this folder.

    `names` adds the students' names, for the instructor only.

    Raises:
        GraderError: no such exercise, or no such store.
    """
    _use_course_of(store)
    find(exercise_id)
    from grader.leaderboard.standings_view import standings
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
