"""Makes two notebooks from a source notebook: the instructor's, with solutions, and the learner's, without."""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import jupytext
import nbformat
from nbformat import ValidationError
from nbformat.notebooknode import NotebookNode
from nbgrader import preprocessors as nbgrader
from nbgrader.nbgraderformat import MetadataValidator
from nbgrader.preprocessors import NbGraderPreprocessor

from grader.authoring import source_tree, stubs
from grader.authoring.source_tree import SourceError

# nbgrader's preprocessors as this course uses them, both in a build and in `nbgrader generate_assignment`.


class ClearSolutions(nbgrader.ClearSolutions):  # type: ignore[misc]
    """nbgrader's preprocessor with a stub that fits its place: nbgrader's writes a Python `raise` into CUDA C++ too."""

    def _replace_solution_region(self, cell: NotebookNode, language: str) -> bool:
        if cell.cell_type != "code":
            return bool(super()._replace_solution_region(cell, language))
        before = cell.source
        cell.source = stubs.without_solutions(before)
        return bool(cell.source != before)


# The value for `c.GenerateAssignment.preprocessors`: nbgrader's own list with one replacement.
GENERATE: list[type[NbGraderPreprocessor]] = [
    nbgrader.IncludeHeaderFooter, nbgrader.LockCells, ClearSolutions, nbgrader.ClearOutput, nbgrader.CheckCellMetadata,
    nbgrader.ComputeChecksums, nbgrader.SaveCells, nbgrader.ClearHiddenTests, nbgrader.ClearMarkScheme,
    nbgrader.ComputeChecksums, nbgrader.CheckCellMetadata,
]  # fmt: skip

# A build has no gradebook to save cells to, and no header to include.
BUILD: list[type[Any]] = [step for step in GENERATE if step not in (nbgrader.IncludeHeaderFooter, nbgrader.SaveCells)]


_KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
_LANGUAGE = {
    "codemirror_mode": {"name": "ipython", "version": 3}, "file_extension": ".py", "mimetype": "text/x-python",
    "name": "python", "nbconvert_exporter": "python", "pygments_lexer": "ipython3",
}  # fmt: skip
_CELL_KEYS = {"jupyter", "nbgrader", "tags"}
_JUPYTEXT_KEYS = {"cell_marker", "lines_to_end_of_cell_marker", "lines_to_next_cell", "title"}
_NBGRADER_KEYS = {"grade", "grade_id", "locked", "points", "solution", "task"}
_CELL_ID = re.compile(r"^[A-Za-z0-9_-]{1,64}$")


def instructor(text: str, name: str, render: Callable[[str], str]) -> NotebookNode:
    """The notebook of a py:percent text, with solutions and their markers, and metadata for nbgrader.

    `name` is for messages; `render` is applied to Markdown cells.

    Raises:
        SourceError: says what is wrong, with the line of the file.
    """
    lines = [cell.line for cell in source_tree.read(text, name)]
    read = jupytext.reads(text, fmt={"extension": ".py", "format_name": "percent"})
    if len(lines) != len(read.cells):
        raise SourceError(f"{name}: there is text before the first `# %%`, or a `# %%` inside a string.")
    notebook: NotebookNode = nbformat.v4.new_notebook(  # type: ignore[no-untyped-call]
        metadata={"kernelspec": dict(_KERNEL), "language_info": dict(_LANGUAGE)}
    )
    for position, (cell, line) in enumerate(zip(read.cells, lines, strict=True), start=1):
        where = f"{name}:{line}"
        _clean_metadata(cell, where)
        if cell.cell_type == "markdown":
            try:
                cell.source = render(cell.source)
            except SourceError as error:
                raise SourceError(f"{where}: {error}") from None
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
        cell["id"] = grade_id or f"cell-{position:03d}"
        if not _CELL_ID.match(cell["id"]):
            raise SourceError(f"{where}: the grade_id {grade_id!r} is not 1 to 64 letters, digits, `-` and `_`.")
        notebook.cells.append(cell)
    notebook.metadata["title"] = _title(notebook, name)
    _validate(notebook, name)
    return notebook


def learner(notebook: NotebookNode, name: str) -> NotebookNode:
    """The instructor's notebook after nbgrader's preprocessors: no solution, no output, cells locked, checksums.

    Raises:
        SourceError: the solution regions are not in order.
    """
    released = deepcopy(notebook)
    resources: dict[str, Any] = {}
    for cell in released.cells:
        solution = cell.metadata.get("nbgrader", {}).get("solution")
        try:
            found = stubs.regions(cell.source)
        except SourceError as error:
            raise SourceError(f"{name}, cell {cell.id}: {error}.") from None
        if found and not solution:
            raise SourceError(f"{name}, cell {cell.id}: a solution in a cell that is not a solution cell.")
        if solution and not found:
            raise SourceError(f"{name}, cell {cell.id}: a solution cell without BEGIN SOLUTION and END SOLUTION.")
    for step in BUILD:
        try:
            released, resources = step().preprocess(released, resources)
        except (RuntimeError, SourceError, ValidationError) as error:
            raise SourceError(f"{name}: {error}.") from None
    _validate(released, name)
    return released


def as_bytes(notebook: NotebookNode) -> bytes:
    """The bytes of the file, always the same for the same notebook."""
    text: str = nbformat.writes(notebook, version=nbformat.NO_CONVERT)  # type: ignore[no-untyped-call]
    return (text + "\n").encode()


def _clean_metadata(cell: NotebookNode, where: str) -> None:
    for key in _JUPYTEXT_KEYS & set(cell.metadata):
        del cell.metadata[key]
    if unknown := set(cell.metadata) - _CELL_KEYS:
        raise SourceError(f"{where}: this cell header has unknown keys {sorted(unknown)}; use {sorted(_CELL_KEYS)}.")
    if "nbgrader" not in cell.metadata:
        return
    given = cell.metadata["nbgrader"]
    if not isinstance(given, dict) or not isinstance(given.get("grade_id"), str):
        raise SourceError(f"{where}: nbgrader metadata must be an object with at least a grade_id.")
    if unknown := set(given) - _NBGRADER_KEYS:
        raise SourceError(f"{where}: unknown nbgrader keys {sorted(unknown)}; use {sorted(_NBGRADER_KEYS)}.")
    for key in ("grade", "solution", "locked", "task"):
        given.setdefault(key, False)
    MetadataValidator().upgrade_cell_metadata(cell)


def _title(notebook: NotebookNode, name: str) -> str:
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and (heading := re.match(r"# +(.+)", cell.source)):
            return heading[1].strip()
    raise SourceError(f"{name}: no markdown cell begins with the notebook's title (`# …`).")


def _validate(notebook: NotebookNode, name: str) -> None:
    try:
        MetadataValidator().validate_nb(notebook)
        nbformat.validate(notebook)
    except ValidationError as error:
        raise SourceError(f"{name}: not a valid notebook for nbgrader: {error.message.splitlines()[0]}.") from None
