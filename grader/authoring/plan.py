"""What `course/` is to hold: every file, in memory, before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nbformat.notebooknode import NotebookNode

from grader.authoring import notebooks, percent, stubs
from grader.authoring.errors import SourceError
from grader.authoring.prose import Results, renderer
from grader.authoring.tree import Tree
from grader.exercise import Exercise

__all__ = ["Plan", "plan"]


@dataclass
class Plan:
    """Paths are from the root of the course (`03_triton/03_fuse_a_softmax.ipynb`), `cells` by path from `source/`."""

    files: dict[str, bytes] = field(default_factory=dict)
    notebooks: dict[str, NotebookNode] = field(default_factory=dict)  # as learners get them
    instructors: dict[str, NotebookNode] = field(default_factory=dict)
    cells: dict[str, list[percent.Cell]] = field(default_factory=dict)
    promised: set[str] = field(default_factory=set)  # every path that has a source, also one that could not be made
    unreadable: set[str] = field(default_factory=set)  # sources, by path from `source/`
    problems: list[str] = field(default_factory=list)


def plan(tree: Tree, exercises: Mapping[str, Exercise]) -> Plan:
    """Make everything that can be made; what cannot is a problem of the plan."""
    made = Plan()
    render = renderer(exercises, Results(tree.results))
    for source in tree.notebooks():
        name = source.relative_to(tree.source).as_posix()
        target = name.removesuffix(".py") + ".ipynb"
        made.promised.add(target)
        try:
            text = source.read_text(encoding="utf-8")
            made.cells[name] = _checked_cells(text, f"source/{name}")
            made.instructors[target] = notebooks.instructor(text, f"source/{name}", render)
            made.notebooks[target] = notebooks.learner(made.instructors[target], f"source/{name}")
            made.files[target] = notebooks.as_bytes(made.notebooks[target])
        except (SourceError, UnicodeDecodeError) as error:
            not_text = isinstance(error, UnicodeDecodeError)
            made.problems.append(f"source/{name} is not UTF-8 text." if not_text else str(error))
            if name not in made.cells:
                made.unreadable.add(name)
    for source in tree.assets():
        path = source.relative_to(tree.source).as_posix()
        made.promised.add(path)
        made.files[path] = source.read_bytes()
    return made


def _checked_cells(text: str, name: str) -> list[percent.Cell]:
    """The cells, their solution regions known to be in order, so that the checks can rely on it."""
    cells = percent.read(text, name)
    for cell in cells:
        try:
            stubs.without_solutions(cell.text)
        except SourceError as error:
            raise SourceError(f"{name}:{cell.line}, {error}.") from None
    return cells
