"""Rebuild a submitted notebook from its cells' texts; cell ids, points and locks come from the gradebook."""

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

# Colouring code takes time quadratic in the length of a line or of white space, and rendering text cubic time.
_BLANKS = re.compile(r"(\s{100})\s+")
_LONG_LINE = re.compile(r"([^\n]{500})(?=[^\n])")


class HandedInExporter(NotebookExporter):
    """`Autograde.exporter_class`: rebuilds a submitted notebook for the first of nbgrader's two passes.

    nbformat could take hours to check a student's own file. nbgrader also copies other submitted files next to the
    graded notebooks. They are removed here, because Formgrader would show them to the instructor's browser.
    """

    optimistic_validation = True  # the notebook is checked after the last preprocessor, not after each

    def from_filename(
        self, filename: str, resources: dict[str, Any] | None = None, **options: Any
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Convert a student's file or, in the second pass, the sanitized notebook.

        Raises:
            UnusableSubmission: the student's file is not a notebook, or is too large.
        """
        if not getattr(self.parent, "_sanitizing", True):
            return super().from_filename(filename, resources, **options)
        about = ResourcesDict()
        about.update(resources or {})
        about["metadata"] = ResourcesDict()
        about["metadata"].update(name=Path(filename).stem, path=str(Path(filename).parent))
        self._remove_other_files(**about["nbgrader"])
        self.handed_in = read_notebook(filename)  # the judge grades this
        return self.from_notebook_node(rebuilt(self.handed_in), about, **options)  # type: ignore[no-any-return, no-untyped-call]

    def _remove_other_files(self, assignment: str, student: str, **_: Any) -> None:
        converter: Any = self.parent
        coursedir = converter.coursedir
        source = Path(coursedir.format_path(coursedir.source_directory, ".", assignment))
        ours = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
        graded = Path(coursedir.format_path(coursedir.autograded_directory, student, assignment))
        remove_all_but(graded, {*ours, TIMESTAMP, SECRET})


def rebuilt(notebook: Mapping[str, Any]) -> NotebookNode:
    """A notebook with only the cells' types, texts and grade_ids of a parsed one."""
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
    text = (source_of(cell) or "").encode("utf-8", "replace").decode("utf-8")  # lone surrogates cannot be written
    made = {
        "id": f"cell-{index}",
        "metadata": {} if grade_id is None else {"nbgrader": {"grade_id": grade_id}},
        "source": text,
    }
    if cell.get("cell_type") == "code":
        return {"cell_type": "code", **made, "outputs": [], "execution_count": None}
    return {"cell_type": "markdown", **made}


def node(**keys: Any) -> NotebookNode:
    """A part of a notebook."""
    return NotebookNode(keys)  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class _Known:
    """A cell in the gradebook."""

    cell_type: str
    source: str
    metadata: dict[str, Any]
    required: bool


class RestoreCells(NbGraderPreprocessor):  # type: ignore[misc]
    """First of `Autograde.sanitize_preprocessors`: keeps cell texts and takes everything else from the gradebook.

    Changed text cells are shown as typed, not rendered. Without this class no cell would have points, and a deleted
    check cell would keep the score of an earlier submission.
    """

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        """Restore the notebook's cells from the gradebook."""
        about = resources["nbgrader"]
        with Gradebook(about["db_url"]) as gradebook:
            known = _known_cells(gradebook, about["notebook"], about["assignment"])
        ours = self._released_texts(about["assignment"], about["notebook"])
        chosen = _choose(nb.cells, known)
        cells = [_plain(cell, known.get(chosen.get(index, "")), ours) for index, cell in enumerate(nb.cells)]
        for grade_id in _insert_missing(cells, known):
            self.log.warning("Cell %r was missing from %s and was restored.", grade_id, about["notebook"])
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
    """Removes hidden tests from locked cells in feedback (jupyter/nbgrader#917)."""

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
    """The chosen cell of each grade_id, as index: grade_id. The last one of the right type is chosen, or the last."""
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
    """Text as typed, because scripts in Markdown would run in Formgrader with the instructor's rights."""
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
    """Insert missing graded cells in the gradebook's order, and return their grade_ids."""
    added = []
    after = 0
    for grade_id, info in known.items():
        places = [i for i, cell in enumerate(cells) if cell.metadata.get("nbgrader", {}).get("grade_id") == grade_id]
        if places:
            after = places[0] + 1
        elif info.required:
            cells.insert(after, _new_cell(info.cell_type, info.source, info))
            after += 1
            added.append(grade_id)
    return added
