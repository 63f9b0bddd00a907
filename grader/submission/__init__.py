"""Reads the text to grade from a file or a notebook; bad input gets one sentence, never a traceback."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from grader.errors import UnusableSubmission
from grader.exercise import MAX_SOURCE_BYTES, Exercise
from grader.exercises import EXERCISES, find
from grader.submission.file_reading import (
    MERGE_CONFLICT,
    cells_of,
    cells_of_script,
    foreign_encoding,
    has_merge_conflict,
    read_notebook,
    read_text,
)
from grader.submission.solution_cell import TURN_INTO_CODE, Cell, judged_cell, note_on, parsed, text_cells
from grader.words import harmless

__all__ = ["Submission", "from_file", "from_notebook", "from_source", "submissions_in"]

_LISTED = "`grader exercises` lists them."
_NOTEBOOK = re.compile(r'\s*\{\s*"(?:cells|metadata|nbformat)"')
_MAGIC = re.compile(r"^\s*(%{1,2}\w|!|\?)|=\s*(!|%\w)|\w\?{1,2}\s*$")


@dataclass(frozen=True)
class Submission:
    """The text to grade: `source` is one cell or file, and `origin` says for people where it came from.

    `note` says which cell was judged, if there was a choice.
    """

    source: str
    exercise_id: str
    origin: str
    note: str = ""

    @property
    def sha256(self) -> str:
        """The hash of the source, in UTF-8 with line feeds."""
        return hashlib.sha256(self.source.encode()).hexdigest()


def from_source(source: str, exercise_id: str, origin: str = "the cell") -> Submission:
    """A submission from a text. Syntax errors pass: the judge reports them, with their line.

    Raises:
        UnknownExercise: no exercise has this id.
        UnusableSubmission: the text is empty, too long or not Unicode, or holds an IPython magic or a merge conflict.
    """
    find(exercise_id)
    source = source.replace("\r\n", "\n").replace("\r", "\n")
    start = origin[:1].upper() + origin[1:] if origin.startswith("the ") else origin
    if not source.strip():
        raise UnusableSubmission(f"{start} is empty: write the solution of {exercise_id!r} into it first.")
    try:
        size = len(source.encode())
    except UnicodeEncodeError:
        raise UnusableSubmission(f"{start} holds characters that are not valid Unicode.") from None
    if "\0" in source:
        raise UnusableSubmission(f"{start} holds a NUL character, so it is not Python source.")
    if size > MAX_SOURCE_BYTES:
        raise UnusableSubmission(
            f"{start} holds {size / 1000:,.0f} kB of code; a solution has at most {MAX_SOURCE_BYTES // 1000} kB."
        )
    if encoding := foreign_encoding(source):
        raise UnusableSubmission(
            f"Line {encoding[1]} of {origin} declares the encoding {encoding[0]!r}, but only UTF-8 is graded: save it "
            "as UTF-8, and delete that line."
        )
    _refuse_magics_and_conflicts(source, start, origin)
    return Submission(source, exercise_id, origin)


def from_file(path: str | os.PathLike[str], exercise_id: str | None = None) -> Submission:
    """The submission in a file: all of a `.py` file, or the solution cell of a notebook.

    Without `exercise_id`, the exercise is the one that the file solves or is named after.

    Raises:
        UnknownExercise: no exercise has this id.
        UnusableSubmission: nothing in it can be graded, or it is not clear for which exercise.
    """
    path = Path(path)
    if exercise_id is not None:
        find(exercise_id)
    text, cells = _load(path)
    if cells is not None:
        return _of_cells(cells, exercise_id or _only_exercise(path, _ids_in(cells)), str(path))
    return from_source(text, exercise_id or _only_exercise(path, _ids_in_source(text)), str(path))


def from_notebook(nb: Mapping[str, Any], exercise_id: str, origin: str = "the notebook") -> Submission:
    """The submission in a notebook that is already parsed as JSON; `judged_cell` has the rule.

    Raises:
        UnknownExercise: no exercise has this id.
        UnusableSubmission: no cell defines the function, or the one that does cannot be graded.
    """
    return _of_cells(cells_of(nb, origin), exercise_id, origin)


def _of_cells(cells: Sequence[Cell], exercise_id: str, origin: str) -> Submission:
    exercise = find(exercise_id)
    cell = judged_cell(cells, exercise)
    if cell is None:
        raise _nothing_to_grade(cells, exercise, origin)
    submission = from_source(cell.source, exercise_id, f"{origin}, {cell.name}")
    return replace(submission, note=note_on(cell, cells, exercise))


def _nothing_to_grade(cells: Sequence[Cell], exercise: Exercise, origin: str) -> UnusableSubmission:
    marked = [cell for cell in cells if cell.grade_id == exercise.id and cell.cell_type == "code"]
    if text := text_cells(cells, exercise):
        said = f"{text[-1].name.capitalize()} does, but it is not a code cell: {TURN_INTO_CODE}."
    elif marked:
        return UnusableSubmission(
            f"{marked[-1].name.capitalize()} of {origin} is the solution cell of {exercise.id!r}, but neither it nor "
            f"any other code cell defines `{exercise.entry}`: write the function into it."
        )
    else:
        said = f"There is nothing to grade for {exercise.id!r}."
    return UnusableSubmission(f"No code cell of {origin} defines `{exercise.entry}`. {said}")


def submissions_in(path: str | os.PathLike[str]) -> list[Submission]:
    """The submissions in a file or notebook, in the order of the exercises.

    Raises:
        UnusableSubmission: the file cannot be read, or it solves no exercise.
    """
    path = Path(path)
    text, cells = _load(path)
    if cells is not None:
        found = [_of_cells(cells, each, str(path)) for each in _ids_in(cells)]
    else:
        found = [from_source(text, each, str(path)) for each in _ids_in_source(text)]
    if not found:
        raise UnusableSubmission(f"{path} solves no exercise: it defines none of their functions. {_LISTED}")
    return found


def _load(path: Path) -> tuple[str, list[Cell] | None]:
    """The text of a Python file, or the cells of a notebook or an exported script."""
    suffix = path.suffix.lower()
    if suffix == ".ipynb":
        return "", cells_of(read_notebook(path), str(path))
    text = read_text(path)
    if suffix != ".py":
        raise UnusableSubmission(
            f"{path} is neither a Python file (.py) nor a notebook (.ipynb): if it is one, rename it."
        )
    if _NOTEBOOK.match(text):
        raise UnusableSubmission(f"{path} is a notebook with the name of a Python file: rename it to .ipynb.")
    return text, cells_of_script(text, str(path))


def _ids_in_source(source: str) -> list[str]:
    return _ids_in([Cell("the file", source)])


def _ids_in(cells: Sequence[Cell]) -> list[str]:
    """The ids of the exercises that a cell solves or is marked for."""
    marked = {cell.grade_id for cell in cells}
    code = [cell for cell in cells if cell.cell_type == "code"]
    return [
        exercise.id
        for exercise in EXERCISES.values()
        if exercise.id in marked or any(cell.defines(exercise.entry) for cell in code)
    ]


def _only_exercise(path: Path, ids: list[str]) -> str:
    if len(ids) == 1:
        return ids[0]
    if path.stem in (ids or EXERCISES):
        return path.stem
    if ids:
        names = ", ".join(f"`{each}`" for each in ids)
        raise UnusableSubmission(f"{path} solves several exercises, {names}: say which one with --exercise.")
    raise UnusableSubmission(f"{path} does not say which exercise it solves: name it with --exercise. {_LISTED}")


def _refuse_magics_and_conflicts(source: str, start: str, origin: str) -> None:
    """Raises an error for merge conflicts and IPython magics. Other syntax errors pass."""
    try:
        parsed(source)
    except SyntaxError as error:
        if has_merge_conflict(source, whole=False):
            raise UnusableSubmission(f"{start} {MERGE_CONFLICT}.") from None
        lines = source.split("\n")
        line = error.lineno or 0
        if 0 < line <= len(lines) and _MAGIC.search(lines[line - 1]):
            text = harmless(lines[line - 1].strip())
            text = text if len(text) <= 40 else text[:39] + "…"
            raise UnusableSubmission(
                f"Line {line} of {origin} is an IPython magic or shell command (`{text}`), which cannot be graded: "
                "a solution is plain Python, so move that line to a cell of its own."
            ) from None
    except (ValueError, RecursionError, MemoryError):
        return  # the judge reports it
    else:
        if has_merge_conflict(source, whole=True):  # in a string, such as the source of a kernel
            raise UnusableSubmission(f"{start} {MERGE_CONFLICT}.")
