"""The notebooks as nbgrader's `source/` folder holds them: with solutions, each chapter standing alone."""

from __future__ import annotations

import posixpath
import shutil
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from urllib.parse import unquote, urlsplit

from nbformat.notebooknode import NotebookNode

from grader.authoring import links, notebooks
from grader.authoring.errors import SourceError
from grader.authoring.plan import Plan, plan
from grader.authoring.tree import Tree
from grader.exercise import Exercise

__all__ = ["write"]


def write(tree: Tree, dest: Path, exercises: Mapping[str, Exercise]) -> list[Path]:
    """See `build.instructor_notebooks`."""
    made = plan(tree, exercises)
    if made.problems:
        raise SourceError(" ".join(made.problems))
    written = []
    for path, notebook in made.instructors.items():
        if "/" not in path:
            continue  # the syllabus belongs to no assignment
        target = dest / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(notebooks.as_bytes(_standing_alone(notebook, path, made, tree, dest)))
        written.append(target)
    return written


def _standing_alone(notebook: NotebookNode, path: str, made: Plan, tree: Tree, dest: Path) -> NotebookNode:
    copy = deepcopy(notebook)
    chapter = path.split("/")[0]
    for cell in copy.cells:
        for link in links.links_in(cell.source) if cell.cell_type == "markdown" else ():
            linked = link.path_from(path)
            if not link.is_local or linked not in made.files or linked.endswith(".ipynb"):
                continue
            inside = linked if linked.startswith(f"{chapter}/") else f"{chapter}/{linked}"
            (dest / inside).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(tree.source / linked, dest / inside)
            written = unquote(urlsplit(link.target).path)
            cell.source = cell.source.replace(written, posixpath.relpath(inside, posixpath.dirname(path)))
    return copy
