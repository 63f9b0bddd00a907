"""The functions that a learner calls in a notebook, such as `check`, `explain` and `benchmark`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from grader.errors import GraderError, UnusableSubmission
from grader.notebook import progress_record
from grader.notebook.cells import Found, continued_text, exercise_of, replace_cell, solution_of
from grader.notebook.display import Live, quiet, show
from grader.notebook.notebook_machine import device, gpu_name
from grader.verdict import Verdict

_T = TypeVar("_T")
_STOPPED = "Stopped. Nothing was graded, and your notebook is as it was."
_STOPPED_MEASURING = "Stopped. Nothing was measured, and your notebook is as it was."


def check(exercise: object = None) -> float | None:
    """Grade the cell that defines a function, and show the report.

    The cell is graded as it was last run, in a separate process that cannot harm the notebook. Returns the points under
    nbgrader's own autograder, otherwise nothing.

    Args:
        exercise: the function, or the id of its exercise: `check(softmax)`, `check("softmax")`.

    Raises:
        GraderError: there is no such exercise, its cell cannot be found, or this machine cannot grade it.
    """
    return _calmly(_STOPPED, lambda: _check(_named(exercise, "check")))


def benchmark(exercise: object = None) -> None:
    """Measure a function and its baselines at several sizes and plot the speed. Without a GPU, show recorded results.

    Args:
        exercise: the function, or the id of its exercise.

    Raises:
        GraderError: there is no such exercise, or its cell cannot be found.
    """
    _calmly(_STOPPED_MEASURING, lambda: _benchmark(_named(exercise, "benchmark")))


def explain(exercise: object = None, *, counters: bool = False) -> None:
    """Explain what limits the speed of a function that passes its cases: the causes, their lines and the evidence.

    Its cell is observed in the simulator, and on the GPU if there is one. Nothing is graded.

    Args:
        exercise: the function, or the id of its exercise.
        counters: whether to also read the hardware counters, on a GPU with Nsight Compute (`ncu`): of the call, and of
            the lines that matter. This runs the cell once more, outside the sandbox.

    Raises:
        GraderError: there is no such exercise, or its cell cannot be found.
    """
    _calmly(_STOPPED_MEASURING, lambda: _explain(_named(exercise, "explain"), counters))


def continue_from(earlier: object, exercise: object) -> None:
    """Replace the cell that calls this by the cell that solves an earlier exercise, with the function renamed.

    Args:
        earlier: the function that solves the earlier exercise, or that exercise's id.
        exercise: the id of the exercise that the calling cell is for.

    Raises:
        GraderError: there is no such exercise, or the earlier one is not written yet.
    """
    _calmly(_STOPPED, lambda: replace_cell(continued_text(_named(earlier, "continue_from"), exercise)))


def progress() -> None:
    """Show every exercise with the best points so far and what is left, as `check` recorded them in this folder."""
    folder = progress_record.learner_folder()
    known = progress_record.load(folder)
    show(progress_record.as_html(known, folder), progress_record.as_text(known))


def standings(exercise: object = None, source: str | Path | None = None) -> None:
    """Show the standings of an exercise.

    Args:
        exercise: the function, or the id of its exercise.
        source: a published folder, its `standings.json`, or a leaderboard's store. By default the path in the
            environment variable GRADER_LEADERBOARD, otherwise the store or the `standings.json` in the working folder.

    Raises:
        GraderError: there is no such exercise, or `source` holds no standings.
    """

    def show_standings() -> None:
        from grader.leaderboard import board_actions

        view = board_actions.standings(exercise_of(_named(exercise, "standings")).id, source)
        show(view._repr_html_(), str(view))

    _calmly(_STOPPED, show_standings)


def _check(exercise: object) -> float | None:
    from grader.bottleneck.explanation import with_why
    from grader.feedback.report import as_html, as_text
    from grader.judge.service import shared_judge

    found = solution_of(exercise)
    submission = found.submission
    with Live(f"Checking {submission.exercise_id}") as live:
        verdict = shared_judge().grade(submission.source, submission.exercise_id, progress=live.progress)
    progress_record.keep(verdict)
    verdict = _of_cell(verdict, found)
    live.finish(as_html(verdict, submission.source), as_text(verdict, submission.source))
    if live.can_change and any(gate.outcome == "failed" for gate in verdict.gates) and not _under_nbgrader():
        with contextlib.suppress(GraderError, KeyboardInterrupt):  # the report is complete without it
            simulated = shared_judge("simulator").evidence(submission.source, submission.exercise_id, beside_gpu=True)
            verdict = with_why(verdict, submission.source, simulated)
            live.finish(as_html(verdict, submission.source), as_text(verdict, submission.source))
    return _for_nbgrader(verdict, submission.source)


def _under_nbgrader() -> bool:
    return bool(os.environ.get("NBGRADER_EXECUTION"))


def _explain(exercise: object, counters: bool) -> None:
    from grader.bottleneck.explanation import explain as explained
    from grader.bottleneck.explanation import with_counters
    from grader.exercises import find
    from grader.feedback.report import explanation_as_html, explanation_as_text
    from grader.judge.service import devices_of, evidence_of, shared_judge

    submission = solution_of(exercise).submission
    with Live(f"Explaining {submission.exercise_id}") as live:
        judges = [shared_judge("auto" if each == "cuda" else each) for each in devices_of()]
        gathered = evidence_of(judges, submission.source, submission.exercise_id, progress=live.progress)
        explanation = explained(find(submission.exercise_id), submission.source, *gathered)
        if counters:
            from grader.explore.profiling.counted_call import count

            live.progress("reading hardware counters", 0, 0)
            counted = count(explanation.exercise, submission.source, gathered)
            explanation = with_counters(explanation, gathered, counted)
    live.finish(explanation_as_html(explanation), explanation_as_text(explanation))


def _named(exercise: object, call: str) -> object:
    if exercise is None:
        raise UnusableSubmission(f"Name the exercise: `{call}(softmax)`.")
    return exercise


def _of_cell(verdict: Verdict, found: Found) -> Verdict:
    """Add the cell's number to a verdict, or its syntax error."""
    if verdict.failure is not None and found.error:
        message = f"The cell as you last ran it has {found.error}. Nothing was checked."
        return replace(verdict, failure=replace(verdict.failure, message=message))
    verdict = replace(verdict, judged=found.submission.note)
    if found.number is None:
        return verdict
    return replace(verdict, environment=replace(verdict.environment, cell=f"In [{found.number}]"))


def _benchmark(exercise: object) -> None:
    from grader.notebook import speed_plot

    found = exercise_of(exercise)
    if not found.plot_cases:
        said = f"{found.id} is not measured at several sizes; `check({found.entry})` reports everything."
        show(_note(said), said)
        return
    if device() == "cpu":
        shown = speed_plot.recorded(found)
        if shown is None:
            said = "Speed needs a GPU, but this machine has none, and no results are recorded for this exercise yet."
            show(_note(said), said)
            return
        shown = replace(shown, origin=f"Your kernel was not run: speed needs a GPU. {shown.origin}")
        show(speed_plot.as_html(shown), speed_plot.as_text(shown))
        return
    from grader.judge.service import shared_judge

    submission = solution_of(exercise).submission
    with Live(f"Measuring {found.id}") as live:
        try:
            timings = shared_judge().measure(submission.source, found.id, progress=live.progress)
        except UnusableSubmission as error:  # the solution fails or is wrong; the call itself is fine
            live.finish(_note(str(error)), str(error))
            return
    shown = speed_plot.measured(found, timings, gpu_name())
    live.finish(speed_plot.as_html(shown), speed_plot.as_text(shown))


def _note(sentence: str) -> str:
    from grader.feedback.report import code, css

    return f'<style>{css()}</style><section class="gr-report"><p class="gr-part">{code(sentence)}</p></section>'


def _for_nbgrader(verdict: Verdict, source: str) -> float | None:
    """Under nbgrader: raise an error if its validation should fail, and return the points to its autograder."""
    execution = os.environ.get("NBGRADER_EXECUTION")
    if execution == "validate" and verdict.status not in ("passed", "not_judged"):
        from grader.feedback.summary import summarize

        summary = summarize(verdict, source)
        raise GraderError(f"{verdict.title}: {summary.headline}. {' '.join(summary.sentences)}".strip())
    return verdict.points if execution == "autograde" else None


def _calmly(stopped: str, work: Callable[[], _T]) -> _T:
    """Do the work, and show an error as one sentence without a traceback."""
    try:
        return work()
    except GraderError as error:
        raise quiet(error, str(error)) from None
    except KeyboardInterrupt as interrupt:
        raise quiet(interrupt, stopped) from None
