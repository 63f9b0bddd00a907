"""Finds solution regions, and replaces each by the stub that a learner gets.

The stub depends on the place of the region:

- in a CUDA C++ string: `// YOUR CODE HERE`
- in a kernel (`@triton.jit`, `@cuda.jit`): `pass  # YOUR CODE HERE`, since a kernel cannot raise
- in any other function: `raise NotImplementedError("not written yet")`
- outside functions: `# YOUR CODE HERE`, so that the cell still defines the same names
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from grader.authoring import source_tree
from grader.authoring.source_tree import SourceError, checkout
from grader.exercises import find
from grader.submission.solution_cell import is_jit

_MARKER = re.compile(r"^(?P<indent>\s*)(?P<mark>#+|//)\s*(?P<edge>BEGIN|END) SOLUTION\s*$")
_ANY_MARKER = re.compile(r"\b(BEGIN|END) SOLUTION\b")

Place = Literal["string", "kernel", "function", "module"]

STUBS: dict[Place, str] = {
    "string": "// YOUR CODE HERE",
    "kernel": "pass  # YOUR CODE HERE",
    "function": 'raise NotImplementedError("not written yet")',
    "module": "# YOUR CODE HERE",
}


@dataclass(frozen=True)
class Region:
    """A solution region of a cell: the line numbers of its two markers, from 1."""

    begin: int
    end: int
    indent: str
    comment: Literal["#", "//"]


def regions(text: str) -> tuple[Region, ...]:
    """The solution regions of a cell, in order.

    Raises:
        SourceError: a marker is nested, unclosed, unopened, misspelt, or of two languages.
    """
    found = []
    opened: tuple[int, str, str] | None = None
    for number, line in enumerate(text.split("\n"), start=1):
        match = _MARKER.match(line)
        if match is None:
            if _ANY_MARKER.search(line):
                raise SourceError(f"line {number} of the cell: a solution marker must be a comment, alone on its line")
            continue
        comment = "//" if match["mark"] == "//" else "#"
        if match["edge"] == "BEGIN":
            if opened:
                raise SourceError(
                    f"line {number} of the cell: a solution begins inside the solution of line {opened[0]}"
                )
            opened = number, match["indent"], comment
        else:
            if opened is None:
                raise SourceError(f"line {number} of the cell: this END SOLUTION has no BEGIN SOLUTION")
            if opened[2] != comment:
                raise SourceError(f"line {number} of the cell: the solution began with `{opened[2]}`, not `{comment}`")
            found.append(Region(opened[0], number, opened[1], comment))  # type: ignore[arg-type]
            opened = None
    if opened:
        raise SourceError(f"line {opened[0]} of the cell: the solution that begins here has no END SOLUTION")
    return tuple(found)


def without_solutions(text: str) -> str:
    """The cell as learners get it: each region replaced by the stub that fits its place.

    Raises:
        SourceError: the markers are wrong, or a code cell with regions is not Python.
    """
    found = regions(text)
    if not found:
        return text
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise SourceError(f"line {error.lineno} of the cell: this is not Python ({error.msg})") from None
    lines = text.split("\n")
    for region in reversed(found):
        place = _place(tree, region)
        if (place == "string") != (region.comment == "//"):
            expected = "`//` inside a string" if place == "string" else "`#` outside strings"
            raise SourceError(f"line {region.begin} of the cell: the solution marker's comment must be {expected}")
        lines[region.begin - 1 : region.end] = [region.indent + STUBS[place]]
    return "\n".join(lines)


def without_markers(text: str) -> str:
    """The cell with its solutions, without the marker lines."""
    return "\n".join(line for line in text.split("\n") if not _MARKER.match(line))


def solution_lines(text: str) -> list[str]:
    """The lines inside the regions."""
    lines = text.split("\n")
    return [line for region in regions(text) for line in lines[region.begin : region.end - 1]]


def visible_lines(text: str) -> list[str]:
    """The lines outside the regions."""
    hidden = {number for region in regions(text) for number in range(region.begin, region.end + 1)}
    return [line for number, line in enumerate(text.split("\n"), start=1) if number not in hidden]


def _place(tree: ast.AST, region: Region) -> Place:
    place: Place = "module"
    for node in ast.walk(tree):  # breadth first: the innermost function comes last
        first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0) or 0
        if not first < region.begin <= last:
            continue
        if isinstance(node, ast.Constant | ast.JoinedStr):
            return "string"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            place = "kernel" if any(map(is_jit, node.decorator_list)) else "function"
    return place


# The reference solutions, read from `source/` without Jupyter, which a GPU machine may not have.


def solution(exercise_id: str, *, root: Path | None = None) -> str:
    """The text of the exercise's solution cell, with the solution and without the markers.

    Raises:
        UnknownExercise: there is no such exercise.
        MachineLacks: this is not a source checkout.
        SourceError: its source notebook has no such cell.
    """
    return without_markers(_cell(exercise_id, root))


def unsolved(exercise_id: str, *, root: Path | None = None) -> str:
    """The text of the same cell as learners get it, with stubs. Raises as `solution` does."""
    return without_solutions(_cell(exercise_id, root))


def _cell(exercise_id: str, root: Path | None) -> str:
    exercise = find(exercise_id)
    tree = checkout(root)
    path = tree.source / exercise.chapter / f"{exercise.notebook}.py"
    name = path.relative_to(tree.root).as_posix()
    if not path.is_file():
        raise SourceError(f"{name} is missing: the solution of {exercise_id!r} belongs there.")
    for cell in source_tree.read(path.read_text(encoding="utf-8"), name):
        if cell.nbgrader.get("solution") and cell.nbgrader.get("grade_id") == exercise_id:
            return cell.text
    raise SourceError(f"{name} has no solution cell with the grade_id {exercise_id!r}.")
