"""What a student's notebook says of itself counts for nothing: ids, points and locks come from the gradebook."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbconvert.exporters import NotebookExporter
from nbconvert.exporters.exporter import ResourcesDict
from nbformat.notebooknode import NotebookNode, from_dict
from nbgrader import utils
from nbgrader.api import Gradebook
from nbgrader.preprocessors import ClearHiddenTests, NbGraderPreprocessor

from grader.classroom.copying import SECRET, TIMESTAMP, remove_all_but
from grader.errors import UnusableSubmission
from grader.exercise import MAX_SOURCE_BYTES
from grader.submission.file_reading import grade_id_of, read_notebook, source_of

# nbformat's checks of a student's file could take hours: what they see is a fresh notebook with its cells' texts.


class HandedInExporter(NotebookExporter):
    """`Autograde.exporter_class`: the first of nbgrader's two passes gets a student's notebook made anew.

    nbgrader puts whatever else was handed in beside the graded notebooks, where Formgrader shows it to the instructor's
    browser. It is removed here, as Formgrader's own button for autograding comes by here, too.
    """

    def from_filename(
        self, filename: str, resources: dict[str, Any] | None = None, **options: Any
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Convert a student's file, or, in the second pass, what became of it.

        Raises:
            UnusableSubmission: the student's is no notebook, or too large.
        """
        if not getattr(self.parent, "_sanitizing", True):
            return super().from_filename(filename, resources, **options)
        about = ResourcesDict()
        about.update(resources or {})
        about["metadata"] = ResourcesDict()
        about["metadata"].update(name=Path(filename).stem, path=str(Path(filename).parent))
        self._remove_what_is_not_ours(**about["nbgrader"])
        self.handed_in = read_notebook(filename)  # which is what is judged
        return self.from_notebook_node(made_anew(self.handed_in), about, **options)  # type: ignore[no-any-return, no-untyped-call]

    def _remove_what_is_not_ours(self, assignment: str, student: str, **_: Any) -> None:
        converter: Any = self.parent
        coursedir = converter.coursedir
        source = Path(coursedir.format_path(coursedir.source_directory, ".", assignment))
        ours = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
        graded = Path(coursedir.format_path(coursedir.autograded_directory, student, assignment))
        remove_all_but(graded, {*ours, TIMESTAMP, SECRET})


def made_anew(notebook: Mapping[str, Any]) -> NotebookNode:
    """A notebook with just the types, texts and grade_ids of a parsed one's cells."""
    cells = [cell for cell in notebook["cells"] if isinstance(cell, Mapping)]
    made = {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"language_info": {"name": "python"}},
        "cells": [_cell(index, cell) for index, cell in enumerate(cells)],
    }
    return from_dict(made)  # type: ignore[no-any-return, no-untyped-call]


def _cell(index: int, cell: Mapping[str, Any]) -> dict[str, Any]:
    grade_id = grade_id_of(cell)
    text = (source_of(cell) or "").encode("utf-8", "replace").decode("utf-8")  # no lone surrogate can be written
    made = {
        "id": f"cell-{index}",
        "metadata": {} if grade_id is None else {"nbgrader": {"grade_id": grade_id}},
        "source": text,
    }
    if cell.get("cell_type") == "code":
        return {"cell_type": "code", **made, "outputs": [], "execution_count": None}
    return {"cell_type": "markdown", **made}


# What a student's notebook says of itself counts for nothing: ids, points and locks come from the gradebook.

# To colour code takes a time that grows with the square of a line's length, and of white space in a row; to show text
# takes one that grows with the cube of a line's length. What is judged is the file as it was handed in.
_BLANKS = re.compile(r"(\s{100})\s+")
_LONG_LINE = re.compile(r"([^\n]{500})(?=[^\n])")


def node(**keys: Any) -> NotebookNode:
    """A part of a notebook."""
    return NotebookNode(keys)  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class _Known:
    """A cell as the gradebook has it."""

    cell_type: str
    source: str
    metadata: dict[str, Any]
    must_be_there: bool


class RestoreCells(NbGraderPreprocessor):  # type: ignore[misc]
    """First of `Autograde.sanitize_preprocessors`: keeps cell texts, and takes all else from the gradebook.

    It is given what `grader.classroom.released_cells` makes of a file. Text cells that are not as they were released are
    shown as they were typed, not rendered.

    Without it no cell would have points, and a deleted check cell would keep the score of an earlier submission.
    """

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        """Return the notebook rebuilt from cell types, cell texts and the gradebook."""
        about = resources["nbgrader"]
        with Gradebook(about["db_url"]) as gradebook:
            known = _known_cells(gradebook, about["notebook"], about["assignment"])
        ours = self._released_texts(about["assignment"], about["notebook"])
        chosen = _choose(nb.cells, known)
        cells = [_plain(cell, known.get(chosen.get(index, "")), ours) for index, cell in enumerate(nb.cells)]
        for grade_id in _insert_missing(cells, known):
            self.log.warning("Cell %r was missing from %s; it was put back.", grade_id, about["notebook"])
        for index, cell in enumerate(cells):
            cell["id"] = f"cell-{index}"
        nb.cells = cells
        return nb, resources

    def _released_texts(self, assignment: str, notebook: str) -> set[str]:
        coursedir = self.parent.parent.coursedir  # the exporter's converter's
        path = Path(coursedir.format_path(coursedir.release_directory, ".", assignment), f"{notebook}.ipynb")
        try:
            cells = read_notebook(path)["cells"]
        except UnusableSubmission:
            return set()
        return {"".join(cell["source"]) for cell in cells}


class HideTests(ClearHiddenTests):  # type: ignore[misc]
    """Takes hidden tests out of feedback (jupyter/nbgrader#917), and leaves the student's own cells alone."""

    def preprocess_cell(
        self, cell: NotebookNode, resources: ResourcesDict, cell_index: int
    ) -> tuple[NotebookNode, ResourcesDict]:
        """Clear the hidden regions of a locked cell."""
        return super().preprocess_cell(cell, resources, cell_index) if utils.is_locked(cell) else (cell, resources)


def _known_cells(gradebook: Gradebook, notebook_id: str, assignment_id: str) -> dict[str, _Known]:
    notebook = gradebook.find_notebook(notebook_id, assignment_id)
    graded = {cell.name: cell.max_score for cell in notebook.grade_cells}
    tasks = {cell.name: cell.max_score for cell in notebook.task_cells}
    solutions = {cell.name for cell in notebook.solution_cells}
    known = {}
    for cell in notebook.source_cells:
        metadata = {
            "schema_version": 3,
            "grade_id": cell.name,
            "grade": cell.name in graded,
            "solution": cell.name in solutions,
            "locked": bool(cell.locked),
            "task": cell.name in tasks,
            "cell_type": cell.cell_type,
        }
        if cell.checksum:
            metadata["checksum"] = cell.checksum
        if cell.name in graded or cell.name in tasks:
            metadata["points"] = float(graded.get(cell.name, tasks.get(cell.name, 0.0)))
        known[cell.name] = _Known(cell.cell_type, cell.source or "", metadata, "points" in metadata)
    return known


def _choose(cells: list[NotebookNode], known: Mapping[str, _Known]) -> dict[int, str]:
    """For each grade_id the one cell that bears it: the last of the right type, else the last."""
    chosen: dict[str, int] = {}
    for index, cell in enumerate(cells):
        grade_id = grade_id_of(cell)
        if grade_id is None or grade_id not in known:
            continue
        fits = cell.cell_type == known[grade_id].cell_type
        if fits or grade_id not in chosen or cells[chosen[grade_id]].cell_type != known[grade_id].cell_type:
            chosen[grade_id] = index
    return {index: grade_id for grade_id, index in chosen.items()}


def _plain(cell: NotebookNode, known: _Known | None, ours: set[str]) -> NotebookNode:
    if (known or cell).cell_type == "code":
        return _new_cell("code", _in_short_lines(cell.source), known)
    return _new_cell("markdown", cell.source if cell.source in ours else _fenced(cell.source), known)


def _in_short_lines(text: str) -> str:
    return _LONG_LINE.sub(r"\1\n", _BLANKS.sub(r"\1\n", text)[:MAX_SOURCE_BYTES])


def _fenced(text: str) -> str:
    """Text as it was typed: Markdown may hold scripts, which would run in Formgrader with the instructor's rights."""
    text = _in_short_lines(text)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}text\n{text}\n{fence}"


def _new_cell(cell_type: str, source: str, known: _Known | None) -> NotebookNode:
    metadata = node(nbgrader=node(**known.metadata)) if known else node()
    cell = node(cell_type=cell_type, metadata=metadata, source=source)
    if cell_type == "code":
        cell.outputs, cell.execution_count = [], None
    return cell


def _insert_missing(cells: list[NotebookNode], known: Mapping[str, _Known]) -> list[str]:
    """Put missing graded cells back, each after the cell that stands before it in the gradebook."""
    added = []
    after = 0
    for grade_id, info in known.items():
        places = [i for i, cell in enumerate(cells) if cell.metadata.get("nbgrader", {}).get("grade_id") == grade_id]
        if places:
            after = places[0] + 1
        elif info.must_be_there:
            cells.insert(after, _new_cell(info.cell_type, info.source, info))
            after += 1
            added.append(grade_id)
    return added
