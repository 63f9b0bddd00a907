"""From a file or a notebook to the text that is graded; bad input gets one sentence, never a traceback."""

from __future__ import annotations

import ast
import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from grader.definitions import bindings, parsed
from grader.errors import UnusableSubmission
from grader.exercise import MAX_SOURCE_BYTES
from grader.exercises import EXERCISES, find
from grader.feedback.words import harmless
from grader.reading import MAX_BYTES, CodeCell, code_cells, parse_notebook, read_notebook, read_text

__all__ = [
    "MAX_BYTES",
    "MAX_SOURCE_BYTES",
    "Submission",
    "from_file",
    "from_notebook",
    "from_source",
    "read_notebook",
    "submissions_in",
]


_LISTED = "`grader exercises` lists them."
_MAGIC = re.compile(r"^\s*(%{1,2}\w|!|\?)|=\s*(!|%\w)|\w\?{1,2}\s*$")


@dataclass(frozen=True)
class Submission:
    """What is graded: `source` is the text of one cell or file, `origin` says for people where it came from."""

    source: str
    exercise_id: str
    origin: str

    @property
    def sha256(self) -> str:
        """Of the source, in UTF-8 with line feeds."""
        return hashlib.sha256(self.source.encode()).hexdigest()


def from_source(source: str, exercise_id: str, origin: str = "the cell") -> Submission:
    """A submission from text at hand. Syntax errors pass: the judge names them, with their line.

    Raises:
        UnknownExercise: no exercise has this id.
        UnusableSubmission: the text is empty, too long, no text, or holds an IPython magic.
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
    _refuse_magics(source, origin)
    return Submission(source, exercise_id, origin)


def from_file(path: str | os.PathLike[str], exercise_id: str | None = None) -> Submission:
    """The submission in a `.py` file (all of it) or a notebook (its solution cell).

    Without `exercise_id` the exercise is the one that the file solves, or is named after.

    Raises:
        UnknownExercise: no exercise has this id.
        UnusableSubmission: nothing in it can be graded, or it is not clear for which exercise.
    """
    path = Path(path)
    if exercise_id is not None:
        find(exercise_id)
    text, notebook = _load(path)
    if notebook is not None:
        return from_notebook(notebook, exercise_id or _only_exercise(path, _ids_in_notebook(notebook)), str(path))
    return from_source(text, exercise_id or _only_exercise(path, _ids_in_source(text)), str(path))


def from_notebook(nb: Mapping[str, Any], exercise_id: str, origin: str = "the notebook") -> Submission:
    """The submission in a notebook that is already parsed as JSON.

    It is the code cell whose `metadata.nbgrader.grade_id` is the exercise's id and that defines its function. Where
    there is none (the metadata was deleted, the solution stands elsewhere) it is the last code cell that does. Of
    several with the grade_id the last counts, as when the notebook is run from top to bottom.

    Raises:
        UnknownExercise: no exercise has this id.
        UnusableSubmission: no code cell defines the function, or the one that does cannot be graded.
    """
    return _of_cells(_cells(nb, origin), exercise_id, origin)


@dataclass(frozen=True)
class _Cell(CodeCell):
    """A code cell that is parsed once, however many exercises are looked for in it."""

    def defines(self, name: str) -> bool:
        if name not in self.source:
            return False
        return name in self._bound if self._bound is not None else _seems_to_define(self.source, name)

    @cached_property
    def _bound(self) -> frozenset[str] | None:
        """The names that it defines; None where it is no Python."""
        module = _module(self.source)
        return None if module is None else frozenset(bound for bound, _ in bindings(module))


def _cells(nb: Mapping[str, Any], origin: str) -> list[_Cell]:
    return [_Cell(**vars(cell)) for cell in code_cells(nb, origin)]


def _of_cells(cells: Sequence[_Cell], exercise_id: str, origin: str) -> Submission:
    entry = find(exercise_id).entry
    marked = [cell for cell in cells if cell.grade_id == exercise_id]
    defining = [cell for cell in cells if cell.defines(entry)]
    best = [cell for cell in defining if cell.grade_id == exercise_id] or defining or marked
    if not best:
        raise UnusableSubmission(
            f"No code cell of {origin} defines `{entry}`, so there is nothing to grade for {exercise_id!r}."
        )
    cell = best[-1]
    submission = from_source(cell.source, exercise_id, f"{origin}, cell {cell.position}")
    if cell not in defining and cell._bound is not None:
        raise UnusableSubmission(
            f"Cell {cell.position} of {origin} is the solution cell of {exercise_id!r}, but neither it nor any other "
            f"code cell defines `{entry}`."
        )
    return submission


def submissions_in(path: str | os.PathLike[str]) -> list[Submission]:
    """All that a file or notebook submits, in the order of the exercises.

    Raises:
        UnusableSubmission: the file cannot be read, or it solves no exercise.
    """
    path = Path(path)
    text, notebook = _load(path)
    if notebook is not None:
        cells = _cells(notebook, str(path))
        found = [_of_cells(cells, each, str(path)) for each in _ids_in(cells)]
    else:
        found = [from_source(text, each, str(path)) for each in _ids_in_source(text)]
    if not found:
        raise UnusableSubmission(f"{path} solves no exercise: it defines none of their functions. {_LISTED}")
    return found


def _load(path: Path) -> tuple[str, dict[str, Any] | None]:
    text = read_text(path)
    suffix = path.suffix.lower()
    if suffix == ".ipynb":
        return text, parse_notebook(text, str(path))
    if suffix == ".py":
        return text, None
    raise UnusableSubmission(f"{path} is neither a Python file (.py) nor a notebook (.ipynb).")


def _module(source: str) -> ast.Module | None:
    """The parsed text, or None where it is no Python (or too much of it to parse here)."""
    if len(source) > MAX_SOURCE_BYTES:
        return None
    try:
        return parsed(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _seems_to_define(source: str, name: str) -> bool:
    """So that a syntax error is reported, and not that the function is missing."""
    return re.search(rf"^(?:async\s+)?(?:def|class)\s+{name}\b|^{name}\s*=", source, re.MULTILINE) is not None


def _ids_in_notebook(nb: Mapping[str, Any]) -> list[str]:
    return _ids_in(_cells(nb, "the notebook"))


def _ids_in_source(source: str) -> list[str]:
    return _ids_in([_Cell(1, source, None)])


def _ids_in(cells: Sequence[_Cell]) -> list[str]:
    return [
        exercise.id
        for exercise in EXERCISES.values()
        if any(cell.grade_id == exercise.id or cell.defines(exercise.entry) for cell in cells)
    ]


def _only_exercise(path: Path, ids: list[str]) -> str:
    if len(ids) == 1:
        return ids[0]
    if path.stem in (ids or EXERCISES):
        return path.stem
    if ids:
        raise UnusableSubmission(f"{path} solves several exercises, {_names(ids)}: say which one with --exercise.")
    raise UnusableSubmission(f"{path} does not say which exercise it solves: name it with --exercise. {_LISTED}")


def _refuse_magics(source: str, origin: str) -> None:
    try:
        parsed(source)
    except SyntaxError as error:
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


def _names(items: Iterable[str]) -> str:
    return ", ".join(f"`{item}`" for item in items)
