"""The learner's progress as a table: every exercise, the best points so far, and what is left."""

from __future__ import annotations

import html
import os
from collections.abc import Mapping
from pathlib import Path

from grader.exercise import Exercise
from grader.exercises import EXERCISES
from grader.feedback.style import css
from grader.feedback.words import points
from grader.notebook.record import Best

__all__ = ["as_html", "as_text", "left"]


def left(exercise: Exercise, best: Best | None) -> str:
    """What is left to do in an exercise, in a few words."""
    if best is None:
        return "not checked yet"
    if best.points >= exercise.max_points:
        return "done"
    if best.points < exercise.correctness_points:
        return "not right yet"
    missing = f"{points(exercise.max_points - best.points)} points for speed"
    return f"{missing}: needs a GPU" if best.device != "cuda" else missing


def as_html(known: Mapping[str, Best], folder: Path) -> str:
    """The table, with links to the notebooks that lie in the learner's folder."""
    rows = []
    for exercise in EXERCISES.values():
        best = known.get(exercise.id)
        done = best is not None and best.points >= exercise.max_points
        share = 100 * (best.points / exercise.max_points if best else 0)
        bar = (
            '<svg class="gr-svg" aria-hidden="true" viewBox="0 0 60 8" width="60" height="8"><rect class="gr-track" '
            f'width="60" height="8"/><rect class="gr-bar-good" width="{0.6 * min(share, 100):.1f}" height="8"/></svg>'
        )
        rows.append(
            f'<tr><td><b aria-hidden="true">{"✓" if done else "·"}</b> {_link(exercise, folder)}</td>'
            f"<td>{_earned(exercise, best)}{bar}</td>"
            f'<td style="text-align:left;white-space:normal">{html.escape(left(exercise, best))}</td></tr>'
        )
    return (
        f'<style>{css()}</style><section class="gr-report" aria-label="Your progress"><div class="gr-head">'
        f'<span class="gr-headline">Your progress</span><span class="gr-points">{_total(known)}</span></div>'
        '<div class="gr-part gr-scroll"><table style="margin:0"><thead><tr><th scope="col">exercise</th>'
        '<th scope="col">best</th><th scope="col" style="text-align:left">what is left</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div></section>"
    )


def as_text(known: Mapping[str, Best]) -> str:
    """The same for a terminal."""
    lines = [f"Your progress: {_total(known)}"]
    wide = max(len(exercise.title) for exercise in EXERCISES.values())
    for exercise in EXERCISES.values():
        best = known.get(exercise.id)
        where = f"{exercise.chapter}/{exercise.notebook}.ipynb"
        lines.append(f"  {exercise.title:{wide}} {_earned(exercise, best):>8}  {left(exercise, best):32} {where}")
    return "\n".join(lines)


def _earned(exercise: Exercise, best: Best | None) -> str:
    return f"{points(best.points) if best else '–'} of {points(exercise.max_points)}"


def _total(known: Mapping[str, Best]) -> str:
    have = sum(known[each].points for each in EXERCISES if each in known)
    return f"{points(have)} of {points(sum(each.max_points for each in EXERCISES.values()))} points"


def _link(exercise: Exercise, folder: Path) -> str:
    notebook = folder / exercise.chapter / f"{exercise.notebook}.ipynb"
    title = html.escape(exercise.title)
    if not notebook.is_file():
        return title
    href = html.escape(Path(os.path.relpath(notebook)).as_posix())
    return f'<a href="{href}">{title}</a>'
