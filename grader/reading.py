"""Read a file that a stranger made: its size first, and one sentence for each way in which it can be bad."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grader.errors import UnusableSubmission
from grader.file_kinds import MERGE_CONFLICT, foreign_kind, has_merge_conflict
from grader.solution_cell import Cell
from grader.source_encoding import decoded

__all__ = [
    "MAX_BYTES",
    "cells_of",
    "grade_id_of",
    "parse_notebook",
    "read_notebook",
    "read_text",
    "source_of",
]

MAX_BYTES = 20_000_000  # a notebook carries its plots
_MAX_CELLS = 1000  # each costs whatever checks and shows a notebook some milliseconds
_MAX_SOURCES = 2_000_000  # characters of all cells: code is parsed to find what defines the function, text is shown
_KEPT_BYTES = 100_000_000  # about, of cells that are kept, so that a run parses each file once: a thousand notebooks
_PYTHON = re.compile(r"^(?:def|class|import|from) \w|^@\w", re.MULTILINE)
_SAVE_AGAIN = "open the notebook in JupyterLab, save it, and hand in that file"


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a regular file of at most `MAX_BYTES`: UTF-8, or what a Python file declares.

    Raises:
        UnusableSubmission: there is none, or it is a directory, too large, empty, unreadable, or no text of ours.
    """
    path = Path(path)
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise UnusableSubmission(f"{path} is a directory: name the .py or .ipynb file in it.")
        if not stat.S_ISREG(status.st_mode):
            raise UnusableSubmission(f"{path} is not a regular file.")
        if status.st_size > MAX_BYTES:
            raise _too_large(path, status.st_size)
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)  # it may have grown since
    except FileNotFoundError:
        raise UnusableSubmission(f"There is no file {path}.") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UnusableSubmission(f"{path} cannot be read: {reason}.") from None
    if len(data) > MAX_BYTES:
        raise _too_large(path, len(data))
    if not data.strip():
        raise UnusableSubmission(f"{path} is empty: save your work and hand it in again.")
    if kind := foreign_kind(data):
        raise UnusableSubmission(f"{path} is {kind[0]}: {kind[1]}.")
    try:
        return decoded(data) if path.suffix.lower() == ".py" else data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UnusableSubmission(
            f"{path} is not UTF-8 text (byte {error.start}, in line {line}, is not): save it as UTF-8 in your editor, "
            "and hand it in again."
        ) from None


def read_notebook(path: str | os.PathLike[str]) -> dict[str, Any]:
    """A notebook file as `parse_notebook` returns it, held to `MAX_BYTES`. A file that has not changed is parsed once.

    Raises:
        UnusableSubmission: there is no such file, or it is no notebook.
    """
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return parse_notebook(read_text(path), str(path))  # which says why it cannot be read
    key = str(path), found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
    if key not in _kept:
        try:
            notebook = parse_notebook(read_text(path), str(path))
            _kept[key] = sum(1000 + len(source_of(cell) or "") for cell in notebook["cells"]), notebook
        except UnusableSubmission as error:
            _kept[key] = 1000, str(error)
    found_in_it = _kept[key][1]
    while len(_kept) > 1 and sum(size for size, _ in _kept.values()) > _KEPT_BYTES:
        del _kept[next(iter(_kept))]  # the oldest
    if isinstance(found_in_it, str):
        raise UnusableSubmission(found_in_it)
    return found_in_it


_kept: dict[tuple[Any, ...], tuple[int, dict[str, Any] | str]] = {}  # bytes, and cells or what is wrong with them


def parse_notebook(text: str, origin: str) -> dict[str, Any]:
    """A notebook's JSON text, parsed: `nbformat` and `cells`, of which each has its type, text and grade_id.

    Outputs and all else that a stranger's file may hold, by the megabyte, are let go.

    Raises:
        UnusableSubmission: it is no JSON, no notebook, of a format before 4, or there is more in it than in any that
            a person wrote.
    """
    try:
        notebook = json.loads(text)
    except json.JSONDecodeError as error:
        raise UnusableSubmission(f"{origin} {_no_json(text, error)}.") from None
    except (RecursionError, ValueError):
        raise UnusableSubmission(
            f"{origin} is not a notebook: its JSON is nested too deeply or out of range."
        ) from None
    cells = _cells(notebook, origin)
    if len(cells) > _MAX_CELLS:
        raise UnusableSubmission(
            f"{origin} holds {len(cells):,} cells, and at most {_MAX_CELLS:,} are read: delete those that it does not "
            "need."
        )
    slim = [_slim(cell) for cell in cells]
    _refuse_long([cell["source"] for cell in slim if cell is not None], origin)
    return {"nbformat": notebook.get("nbformat"), "cells": slim}


def _slim(cell: Any) -> dict[str, Any] | None:
    """A parsed cell without its outputs; None where it is none, so that those behind it keep their positions."""
    source = source_of(cell)
    if source is None:
        return None
    grade_id = grade_id_of(cell)
    metadata = {} if grade_id is None else {"nbgrader": {"grade_id": grade_id}}
    return {"cell_type": str(cell.get("cell_type")), "source": source, "metadata": metadata}


def source_of(cell: Any) -> str | None:
    """The text of a parsed cell, which may be a list of lines; None where it has none."""
    source = cell.get("source", "") if isinstance(cell, Mapping) else None
    if isinstance(source, list):
        return "".join(line for line in source if isinstance(line, str))
    return source if isinstance(source, str) else None


def grade_id_of(cell: Mapping[str, Any]) -> str | None:
    """The name by which nbgrader knows a parsed cell; None where it has none."""
    metadata = cell.get("metadata")
    nbgrader = metadata.get("nbgrader") if isinstance(metadata, Mapping) else None
    grade_id = nbgrader.get("grade_id") if isinstance(nbgrader, Mapping) else None
    return grade_id if isinstance(grade_id, str) else None


def cells_of(nb: Any, origin: str) -> list[Cell]:
    """The cells of a parsed notebook, named by their positions from 1; what is malformed in it is passed over.

    Raises:
        UnusableSubmission: it has no list of cells, or more code than can be parsed in a moment.
    """
    found = []
    for position, cell in enumerate(_cells(nb, origin), start=1):
        source = source_of(cell)
        if source is not None:
            found.append(Cell(f"cell {position}", source, str(cell.get("cell_type")), grade_id_of(cell)))
    _refuse_long([cell.source for cell in found if cell.cell_type == "code"], origin)
    return found


def _no_json(text: str, error: json.JSONDecodeError) -> str:
    """What a notebook's text is that is no JSON, and what to do."""
    if has_merge_conflict(text, whole=False):
        return MERGE_CONFLICT
    if not text.lstrip().startswith(("{", "[")) and _PYTHON.search(text):
        return "is not a notebook but Python source: name it .py"
    said = f"is not a notebook: it is not valid JSON (line {error.lineno}: {error.msg})"
    if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
        return f"{said} and ends in the middle, as a file does that was cut off: {_SAVE_AGAIN}"
    return f"{said}: {_SAVE_AGAIN}"


def _refuse_long(sources: list[str], origin: str) -> None:
    if sum(map(len, sources)) > _MAX_SOURCES:
        raise UnusableSubmission(
            f"{origin} holds more than {_MAX_SOURCES // 1_000_000} MB of code and text in its cells, which no notebook "
            "needs."
        )


def _cells(nb: Any, origin: str) -> list[Any]:
    if not isinstance(nb, Mapping):
        raise UnusableSubmission(f"{origin} is JSON but not a notebook, as it is not an object: {_SAVE_AGAIN}.")
    version = nb.get("nbformat")
    cells = nb.get("cells")
    if isinstance(version, int) and version < 4:
        raise UnusableSubmission(
            f"{origin} is in notebook format {version}, and format 4 is needed: open it in JupyterLab and save it."
        )
    if not isinstance(cells, list):
        raise UnusableSubmission(f"{origin} is JSON but not a notebook, as it has no list of cells: {_SAVE_AGAIN}.")
    return cells


def _too_large(path: Path, size: int) -> UnusableSubmission:
    advice = " Clear its outputs and save it again." if path.suffix.lower() == ".ipynb" else ""
    return UnusableSubmission(
        f"{path} is too large: {size / 1e6:,.1f} MB, and at most {MAX_BYTES // 1_000_000} MB are read.{advice}"
    )
