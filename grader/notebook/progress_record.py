"""The learner's progress as a table: every exercise, the best points so far, and what is left."""

from __future__ import annotations

import contextlib
import fcntl
import html
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from grader.exercise import Exercise
from grader.exercises import CHAPTERS, EXERCISES
from grader.feedback.report import css
from grader.files import write_in_one_step
from grader.verdict import Verdict
from grader.words import in_points, points

# The learner's best result for each exercise, kept in `.grader/progress.json` in the learner's folder.

_FOLDER, _FILE = ".grader", "progress.json"
_CHAPTER = re.compile(r"\d\d_\w+")


@dataclass(frozen=True)
class Best:
    """The best verdict so far on one exercise. `reachable_points` is the most that the machine can give."""

    points: float
    max_points: float
    reachable_points: float
    status: str
    device: str
    gpu: str
    at: str
    submission_sha256: str
    checks: int = 1

    @classmethod
    def of(cls, verdict: Verdict) -> Best:
        environment = verdict.environment
        return cls(verdict.points, verdict.max_points, verdict.reachable_points, verdict.status, environment.device,
                   environment.gpu, verdict.started_at, verdict.submission_sha256)  # fmt: skip


def learner_folder(start: Path | None = None) -> Path:
    """The folder that holds the chapters: the nearest parent with a `.grader`, otherwise the chapter's parent."""
    here = (start or Path.cwd()).absolute()
    for folder in (here, *here.parents):
        if (folder / _FOLDER).is_dir():
            return folder
    return here.parent if _CHAPTER.fullmatch(here.name) else here


def load(folder: Path | None = None) -> dict[str, Best]:
    """The best results by exercise id; empty if there is no record, or if it cannot be read."""
    return _read((folder or learner_folder()) / _FOLDER / _FILE)[0]


def keep(verdict: Verdict, folder: Path | None = None) -> None:
    """Records a verdict that equals or beats the best so far. If it cannot be written, nothing happens."""
    if verdict.status == "unusable":
        return
    path = (folder or learner_folder()) / _FOLDER / _FILE
    with contextlib.suppress(OSError), _locked(path):
        known, sound = _read(path)
        if not sound:
            os.replace(path, path.with_suffix(".unreadable.json"))
        best, before = Best.of(verdict), known.get(verdict.exercise)
        if before is not None:
            better = (best.points, best.reachable_points) >= (before.points, before.reachable_points)
            better |= best.status == "not_judged" and not before.points  # what is open now, not an earlier mistake
            best = Best(**{**asdict(best if better else before), "checks": before.checks + 1})
        known[verdict.exercise] = best
        data = {"version": 1, "exercises": {name: asdict(value) for name, value in known.items()}}
        write_in_one_step(path, json.dumps(data, indent=1, ensure_ascii=False))


def _read(path: Path) -> tuple[dict[str, Best], bool]:
    """The readable entries of the record, and whether every entry was readable."""
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))["exercises"].items()
    except FileNotFoundError:
        return {}, True
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}, False
    found, sound = {}, True
    for exercise_id, entry in entries:
        try:
            found[str(exercise_id)] = _best(entry)
        except (TypeError, ValueError, LookupError):
            sound = False
    return found, sound


def _best(entry: dict[str, Any]) -> Best:
    kinds = {"points": float, "max_points": float, "reachable_points": float, "checks": int}
    return Best(**{each.name: kinds.get(each.name, str)(entry[each.name]) for each in fields(Best)})


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """A lock, because two notebooks may finish a check at the same time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with (path.parent / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def finished(exercise: Exercise, best: Best | None) -> bool:
    """Whether the learner has all points, or all that a machine without a GPU can give."""
    if best is None or best.points < exercise.correctness_points:
        return False
    return best.points >= exercise.max_points or (best.device != "cuda" and best.points >= best.reachable_points)


def left(exercise: Exercise, best: Best | None) -> str:
    """Return what is left to do in an exercise, in a few words."""
    if best is None:
        return "not checked yet"
    if best.points >= exercise.max_points:
        return "done"
    if best.status == "not_judged":
        return "not judged here: needs a GPU"
    if best.points < exercise.correctness_points:
        return "not right yet"
    missing = in_points(exercise.max_points - best.points)
    return f"the rest needs a GPU: {missing}" if best.device != "cuda" else f"{missing} for speed"


def following(known: Mapping[str, Best]) -> Exercise | None:
    """The first exercise of the course that the learner can still do here; None if there is none."""
    for exercise in EXERCISES.values():
        best = known.get(exercise.id)
        if not finished(exercise, best) and (best is None or best.status != "not_judged"):
            return exercise
    return None


def as_html(known: Mapping[str, Best], folder: Path) -> str:
    """The table by chapter, with links to the notebooks in the learner's folder."""
    rows = []
    for title, exercises in _chapters():
        rows.append(
            f'<tr><th scope="rowgroup" style="text-align:left">{html.escape(title)}</th>'
            f'<th style="text-align:left">{_total(known, exercises)}</th><td></td></tr>'
        )
        rows += [_row(exercise, known.get(exercise.id), folder) for exercise in exercises]
    following_one = following(known)
    onward = f'<div class="gr-part">Continue: {_link(following_one, folder)}</div>' if following_one is not None else ""
    return (
        f'<style>{css()}</style><section class="gr-report" aria-label="Your progress"><div class="gr-head">'
        f'<span class="gr-headline">Your progress</span><span class="gr-points">{_total(known)}</span></div>{onward}'
        '<div class="gr-part gr-scroll"><table style="margin:0"><thead><tr>'
        '<th scope="col" style="text-align:left">exercise</th><th scope="col" style="text-align:left">best</th>'
        '<th scope="col" style="text-align:left">what is left</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div></section>"
    )


def _row(exercise: Exercise, best: Best | None, folder: Path) -> str:
    share = 100 * (best.points / exercise.max_points if best else 0)
    bar = (
        '<svg class="gr-svg" aria-hidden="true" viewBox="0 0 60 8" width="60" height="8"><rect class="gr-track" '
        f'width="60" height="8"/><rect class="gr-bar-good" width="{0.6 * min(share, 100):.1f}" height="8"/></svg>'
    )
    return (
        f'<tr><td style="text-align:left"><b aria-hidden="true">{_mark(exercise, best)}</b> '
        f"<code>{html.escape(exercise.id)}</code> {_link(exercise, folder)}</td>"
        f'<td style="text-align:left">{_earned(exercise, best)} {bar}</td>'
        f'<td style="text-align:left;white-space:normal">{html.escape(left(exercise, best))}</td></tr>'
    )


def as_text(known: Mapping[str, Best]) -> str:
    """The same table for a terminal."""
    lines = [f"Your progress: {_total(known)}"]
    if (exercise := following(known)) is not None:
        lines.append(f"Continue: {exercise.title}, {exercise.chapter}/{exercise.notebook}.ipynb")
    wide_id = max(len(each.id) for each in EXERCISES.values())
    wide = max(len(each.title) for each in EXERCISES.values())
    for title, exercises in _chapters():
        lines.append(f"{title}: {_total(known, exercises)}")
        for exercise in exercises:
            best = known.get(exercise.id)
            lines.append(
                f"  {_mark(exercise, best)} {exercise.id:{wide_id}} {exercise.title:{wide}} "
                f"{_earned(exercise, best):>8}  {left(exercise, best)}"
            )
    return "\n".join(lines)


def _chapters() -> list[tuple[str, list[Exercise]]]:
    """Each chapter's title and exercises; a course's own chapters come last, under the names of their folders."""
    every = list(EXERCISES.values())
    folders = dict.fromkeys([*CHAPTERS, *(exercise.chapter for exercise in every)])
    return [(CHAPTERS.get(folder, folder), [each for each in every if each.chapter == folder]) for folder in folders]


def _mark(exercise: Exercise, best: Best | None) -> str:
    return "✓" if finished(exercise, best) else "·"


def _earned(exercise: Exercise, best: Best | None) -> str:
    return f"{points(best.points) if best else '–'} of {points(exercise.max_points)}"


def _total(known: Mapping[str, Best], exercises: Iterable[Exercise] | None = None) -> str:
    counted = list(EXERCISES.values() if exercises is None else exercises)
    have = sum(known[each.id].points for each in counted if each.id in known)
    return f"{points(have)} of {in_points(sum(each.max_points for each in counted))}"


def _link(exercise: Exercise, folder: Path) -> str:
    notebook = folder / exercise.chapter / f"{exercise.notebook}.ipynb"
    title = html.escape(exercise.title)
    if not notebook.is_file():
        return title
    href = html.escape(Path(os.path.relpath(notebook)).as_posix())
    return f'<a href="{href}">{title}</a>'
