"""nbgrader's preprocessors as this course uses them, in a build and in `nbgrader generate_assignment` alike."""

from __future__ import annotations

from typing import Any

from nbformat.notebooknode import NotebookNode
from nbgrader import preprocessors as nbgrader
from nbgrader.preprocessors import NbGraderPreprocessor

from grader.authoring import stubs

__all__ = ["BUILD", "GENERATE", "ClearSolutions"]


class ClearSolutions(nbgrader.ClearSolutions):  # type: ignore[misc]
    """nbgrader's, with a stub that fits its place: its own writes a Python `raise` into CUDA C++ too."""

    def _replace_solution_region(self, cell: NotebookNode, language: str) -> bool:
        if cell.cell_type != "code":
            return bool(super()._replace_solution_region(cell, language))
        before = cell.source
        cell.source = stubs.without_solutions(before)
        return bool(cell.source != before)


# The value for `c.GenerateAssignment.preprocessors`: nbgrader's own list, with the one replacement.
GENERATE: list[type[NbGraderPreprocessor]] = [
    nbgrader.IncludeHeaderFooter,
    nbgrader.LockCells,
    ClearSolutions,
    nbgrader.ClearOutput,
    nbgrader.CheckCellMetadata,
    nbgrader.ComputeChecksums,
    nbgrader.SaveCells,
    nbgrader.ClearHiddenTests,
    nbgrader.ClearMarkScheme,
    nbgrader.ComputeChecksums,
    nbgrader.CheckCellMetadata,
]

# A build has no gradebook to save cells to, and no header to include.
BUILD: list[type[Any]] = [step for step in GENERATE if step not in (nbgrader.IncludeHeaderFooter, nbgrader.SaveCells)]
