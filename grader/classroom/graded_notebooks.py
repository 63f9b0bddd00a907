"""The notebooks in `autograded/`, and the verdicts in their check cells."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from grader.classroom import course_folder as folder
from grader.verdict import Verdict


def graded_notebooks(api: Any, assignment: str, student: str) -> list[tuple[Path, dict[str, Any]]]:
    """A student's graded notebooks that can be read, as parsed JSON."""
    found = []
    for notebook in sorted(folder.path(api, "autograded", assignment, student).glob("*.ipynb")):
        with contextlib.suppress(OSError, ValueError, RecursionError):  # `autograde` reports it
            found.append((notebook, dict(json.loads(notebook.read_bytes()))))
    return found


def check_cells(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The check cells of a parsed notebook."""
    cells = []
    for cell in document.get("cells", ()):
        about = cell.get("metadata", {}).get("nbgrader", {})
        if about.get("grade") and str(about.get("grade_id", "")).startswith(folder.CHECK_PREFIX):
            cells.append(cell)
    return cells


def verdict_in(cell: dict[str, Any]) -> Verdict | None:
    """The judge's verdict in a check cell."""
    try:
        return Verdict.from_dict(cell["metadata"]["grader"]["verdict"])
    except (KeyError, TypeError):  # not judged, or by another version of the grader
        return None
