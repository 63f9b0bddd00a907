"""nbformat's checks of a student's file could take hours: what they see is a fresh notebook with its cells' texts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nbconvert.exporters import NotebookExporter
from nbconvert.exporters.exporter import ResourcesDict
from nbformat.notebooknode import NotebookNode, from_dict

from grader.classroom.copying import SECRET, TIMESTAMP, remove_all_but
from grader.reading import grade_id_of, read_notebook, source_of

__all__ = ["HandedInExporter", "made_anew"]


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
