"""What a learner calls in a notebook: `check`, `benchmark`, `leaderboard` and `progress`. Each shows, none returns."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from grader.errors import GraderError, UnusableSubmission
from grader.notebook import progress_record
from grader.notebook.cells import Found, exercise_of, solution_of
from grader.notebook.display import Live, quiet, show
from grader.notebook.notebook_machine import device, gpu_name
from grader.verdict import Verdict

__all__ = ["benchmark", "check", "leaderboard", "progress"]

_T = TypeVar("_T")
_STOPPED = "Stopped. Nothing was graded, and your notebook is as it was."
_STOPPED_MEASURING = "Stopped. Nothing was measured, and your notebook is as it was."


def check(exercise: object = None) -> float | None:
    """Grades the cell that defines a function, and shows the report.

    Args:
        exercise: the function, or the id of its exercise: `check(softmax)`, `check("softmax")`.

    The text of the cell that was run last is graded in a process of its own: whatever it does, the notebook goes on.
    Returns nothing, but for nbgrader's own autograder, which reads the points.

    Raises:
        GraderError: there is no such exercise, its cell cannot be found, or this machine lacks something; one sentence.
    """
    return _calmly(_STOPPED, lambda: _check(_named(exercise, "check")))


def benchmark(exercise: object = None) -> None:
    """Measures a function and its peers over sizes, and draws the speed. Without a GPU it shows the recorded results.

    Args:
        exercise: the function, or the id of its exercise.

    Raises:
        GraderError: there is no such exercise, its cell cannot be found, or it is not right yet; one sentence.
    """
    _calmly(_STOPPED_MEASURING, lambda: _benchmark(_named(exercise, "benchmark")))


def progress() -> None:
    """Shows every exercise with the best points so far and what is left, as `check` recorded them in this folder."""
    from grader.notebook import progress_record

    folder = progress_record.learner_folder()
    known = progress_record.load(folder)
    show(progress_record.as_html(known, folder), progress_record.as_text(known))


def leaderboard(exercise: object = None, source: str | Path | None = None) -> None:
    """Shows the standings of an exercise.

    Args:
        exercise: the function, or the id of its exercise.
        source: a published folder, its `standings.json`, or a leaderboard's store; by default the environment variable
            GRADER_LEADERBOARD, else what lies in the working folder.

    Raises:
        GraderError: there is no such exercise; one sentence.
    """

    def standings() -> None:
        from grader.leaderboard.standings_view import standings

        view = standings(exercise_of(_named(exercise, "leaderboard")).id, source)
        show(view._repr_html_(), str(view))

    _calmly(_STOPPED, standings)


def _check(exercise: object) -> float | None:
    from grader.feedback.report import as_html, as_text
    from grader.judge.service import shared_judge

    found = solution_of(exercise)
    submission = found.submission
    live = Live(f"Checking {submission.exercise_id}")
    try:
        live.progress("starting", 0, 0)
        verdict = shared_judge().grade(submission.source, submission.exercise_id, progress=live.progress)
    except BaseException:
        live.clear()
        raise
    progress_record.keep(verdict)
    verdict = _of_cell(verdict, found)
    live.finish(as_html(verdict, submission.source), as_text(verdict, submission.source))
    return _for_nbgrader(verdict, submission.source)


def _named(exercise: object, call: str) -> object:
    if exercise is None:
        raise UnusableSubmission(f"Name the exercise: `{call}(softmax)`.")
    return exercise


def _of_cell(verdict: Verdict, found: Found) -> Verdict:
    """The verdict as that of a cell: which one it was, and that no earlier one was taken in its place."""
    if verdict.failure is not None and found.error:
        said = f"The cell as you last ran it has {found.error}. Nothing was checked."
        return replace(verdict, failure=replace(verdict.failure, message=said))
    verdict = replace(verdict, judged=found.submission.note)
    if found.number is None:
        return verdict
    return replace(verdict, environment=replace(verdict.environment, cell=f"In [{found.number}]"))


def _benchmark(exercise: object) -> None:
    from grader.notebook import speed_plot

    found = exercise_of(exercise)
    if not found.plot_cases:
        said = f"{found.id} is not measured over sizes: `check({found.entry})` says all that there is to say."
        show(_note(said), said)
        return
    if device() == "cpu":
        shown = speed_plot.recorded(found)
        if shown is None:
            said = "Speed needs a GPU, which this machine has not, and no results are recorded for this exercise yet."
            show(_note(said), said)
            return
        shown = replace(shown, origin=f"Your kernel was not run: speed needs a GPU. {shown.origin}")
        show(speed_plot.as_html(shown), speed_plot.as_text(shown))
        return
    from grader.judge.service import shared_judge

    submission = solution_of(exercise).submission
    live = Live(f"Measuring {found.id}")
    try:
        live.progress("starting", 0, 0)
        timings = shared_judge().measure(submission.source, found.id, progress=live.progress)
    except UnusableSubmission as error:  # it fails or is wrong: no fault of the call's
        live.finish(_note(str(error)), str(error))
        return
    except BaseException:
        live.clear()
        raise
    shown = speed_plot.measured(found, timings, gpu_name())
    live.finish(speed_plot.as_html(shown), speed_plot.as_text(shown))


def _note(sentence: str) -> str:
    from grader.feedback.report import code, css

    return f'<style>{css()}</style><section class="gr-report"><p class="gr-part">{code(sentence)}</p></section>'


def _for_nbgrader(verdict: Verdict, source: str) -> float | None:
    """nbgrader's validation wants an error where something is missing; its own autograder takes a number as points."""
    execution = os.environ.get("NBGRADER_EXECUTION")
    if execution == "validate" and verdict.status != "passed":
        from grader.feedback.summary import summarize

        summary = summarize(verdict, source)
        raise GraderError(f"{verdict.title}: {summary.headline}. {' '.join(summary.sentences)}".strip())
    return verdict.points if execution == "autograde" else None


def _calmly(stopped: str, work: Callable[[], _T]) -> _T:
    """Runs it so that what ends it is one sentence in a notebook, and no traceback of ours."""
    try:
        return work()
    except GraderError as error:
        raise quiet(error, str(error)) from None
    except KeyboardInterrupt as interrupt:
        raise quiet(interrupt, stopped) from None
