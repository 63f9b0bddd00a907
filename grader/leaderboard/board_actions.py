"""What `grader leaderboard …` does; no printing here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from grader.exercises import find, found

if TYPE_CHECKING:
    from grader.leaderboard.board_run import RunOutcome
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
    progress: Progress | None = None,
) -> RunOutcome:
    """Measures a course's submissions of an exercise into `store` (by default `leaderboard.sqlite` in the course).

    Without `sandbox` a submission can do on this machine whatever its user can.

    Raises:
        GraderError: no such exercise, nothing handed in, the store or the machine cannot be used.
    """
    found.use(Path(course))
    exercise = find(exercise_id)
    from grader.judge.sandbox import must_be_caged
    from grader.judge.service import Judge
    from grader.leaderboard.board_run import handed_in
    from grader.leaderboard.board_run import run as run_submissions
    from grader.leaderboard.store import Store

    if sandbox:
        must_be_caged()
    course = Path(course)
    handed_in(course, exercise)  # before a store is made in the wrong place
    with Store(store or course / STORE_NAME) as opened, Judge(device, sandbox=sandbox) as judge:
        return run_submissions(exercise_id, course, opened, judge, progress)


def publish(dest: Path | str, store: Path | str | None = None) -> PublishReport:
    """Writes the site of `store` (by default `leaderboard.sqlite` in this folder) to `dest`.

    Raises:
        GraderError: there is no such store, or `dest` cannot be written to.
    """
    _use_course_of(store)
    from grader.leaderboard.site import publish as publish_store
    from grader.leaderboard.store import Store

    with Store(store or STORE_NAME, create=False) as opened:
        return publish_store(opened, dest)


def show(exercise_id: str, store: Path | str | None = None, names: bool = False) -> View:
    """The standings of an exercise in `store` (by default `leaderboard.sqlite` in this folder).

    `names` adds the students' own names, for the instructor's eyes.

    Raises:
        GraderError: no such exercise, or no such store.
    """
    _use_course_of(store)
    find(exercise_id)
    from grader.leaderboard.standings_view import View, standings
    from grader.leaderboard.store import Store

    with Store(store or STORE_NAME, create=False) as opened:
        view = standings(exercise_id, opened.path)
        shown = {row.pseudonym for board in view.boards for row in board.rows}
        shown |= {entry.pseudonym for board in view.boards for entry in board.unranked}
        kept = opened.pseudonyms().items() if names else ()
        students = {name: student for student, name in kept if name in shown}
    return View(view.exercise, view.boards, view.message, students)


def _use_course_of(store: Path | str | None) -> None:
    """Has the exercises of the folder of `store`, which by default is the course folder, known here."""
    found.use(Path(store or STORE_NAME).expanduser().absolute().parent)
