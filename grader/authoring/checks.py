"""Checks of the source notebooks against the exercises: ids, points, stubs that still define the function."""

from __future__ import annotations

import ast
import json
import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token
from nbformat.notebooknode import NotebookNode

from grader.authoring import source_tree, stubs
from grader.authoring.source_tree import SourceError
from grader.exercise import Exercise
from grader.words import plural

# Leaks: lines of a solution anywhere in `course/`.
#
# Lines are compared without white space, so that an indent or a line break hides nothing, and without a comment at
# the end. Trivial lines do not count (short ones, imports, pragmas), nor do lines that an author shows on purpose: in a
# code cell of a source notebook, outside the solution regions. Prose does not excuse a line. A place that holds most
# of one solution is a leak even if each of its lines is shown somewhere.

SHORTEST = 12  # characters without white space; shorter lines (`else:`, `return out`) give nothing away
COPIED_SHARE = 0.8  # of a solution's lines in one place, and at least COPIED_LINES, are a copy
COPIED_LINES = 3

_COMMENT = re.compile(r"\s+(#|//)\s.*$")
_IMPORT = re.compile(r"^\s*(import\s|from\s+\S+\s+import\s|#include\b|#pragma\b)")


def solutions(sources: Mapping[str, Sequence[source_tree.Cell]]) -> dict[str, list[str]]:
    """The lines of each solution that count, by grade_id."""
    found: dict[str, list[str]] = {}
    for cells in sources.values():
        for cell in cells:
            if cell.kind == "code" and (lines := stubs.solution_lines(cell.text)):
                kept = found.setdefault(str(cell.nbgrader.get("grade_id", "")), [])
                kept += [line.strip() for line in lines if not trivial(line)]
    return found


def trivial(line: str) -> bool:
    """Whether a line says too little for its presence to give a solution away."""
    return len(_squeezed(_bare(line))) < SHORTEST or bool(_IMPORT.match(line))


def find(files: Mapping[str, bytes], sources: Mapping[str, Sequence[source_tree.Cell]]) -> dict[str, list[str]]:
    """The leaks in the files of `course/` (path → content), as sentences by path."""
    wanted = {key: {_squeezed(_bare(line)): line for line in lines} for key, lines in solutions(sources).items()}
    shown = [
        _squeezed("\n".join(stubs.visible_lines(cell.text)))
        for cells in sources.values()
        for cell in cells
        if cell.kind == "code"
    ]
    excused = {line for lines in wanted.values() for line in lines if any(line in text for text in shown)}
    leaks: dict[str, list[str]] = {}
    for path, content in files.items():
        for place, text in _places(content):
            squeezed = _squeezed(text)
            for key, lines in wanted.items():
                held = [line for line in lines if line in squeezed]
                loose = [line for line in held if line not in excused]
                copied = len(held) >= max(COPIED_LINES, COPIED_SHARE * len(lines))
                for line in loose if not copied else ():
                    leaks.setdefault(path, []).append(
                        f"course/{path}: {place} holds a line of the solution of {key!r}: {lines[line]!r}."
                    )
                if copied:
                    leaks.setdefault(path, []).append(
                        f"course/{path}: {place} holds {len(held)} of the {plural(len(lines), 'line')} of the "
                        f"solution of {key!r}, from {lines[held[0]]!r} on."
                    )
    return leaks


def _places(content: bytes) -> Iterator[tuple[str, str]]:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return  # a picture or an archive
    try:
        cells = json.loads(text)["cells"]
        places = [(f"cell {cell.get('id', number)}", "\n".join(_strings(cell))) for number, cell in enumerate(cells)]
    except (ValueError, TypeError, KeyError, AttributeError):
        places = [("the file", text)]
    yield from places


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


def _bare(line: str) -> str:
    return _COMMENT.sub("", line)


def _squeezed(text: str) -> str:
    return "".join(text.split())


# Links and pictures in Markdown cells: local ones must exist, and pictures need alt text.

_MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")


@dataclass(frozen=True)
class Link:
    """A link or a picture; `alt` is None for a link."""

    target: str
    alt: str | None = None

    @property
    def is_local(self) -> bool:
        parts = urlsplit(self.target)
        return not parts.scheme and not parts.netloc

    def path_from(self, notebook: str) -> str:
        """The target's path from the root of the course; the notebook's own for a bare `#anchor`."""
        path = unquote(urlsplit(self.target).path)
        return posixpath.normpath(posixpath.join(posixpath.dirname(notebook), path)) if path else notebook


def links_in(markdown: str) -> list[Link]:
    """The links and pictures of a Markdown text, in Markdown or in HTML, but not in code."""
    return [link for token in _MARKDOWN.parse(markdown) for link in _links(token)]


def faults(notebooks: Mapping[str, NotebookNode], files: Collection[str]) -> list[str]:
    """A sentence for each broken link and each picture without alt text.

    `notebooks` are the course's, by path from its root; `files` are all paths that the course has.
    """
    anchors = {path: _anchors(notebook) for path, notebook in notebooks.items()}
    found = []
    for path, notebook in notebooks.items():
        for cell in notebook.cells:
            for link in links_in(cell.source) if cell.cell_type == "markdown" else ():
                fault = _fault(link, path, files, anchors)
                if fault:
                    found.append(f"course/{path}, cell {cell.id}: {fault}.")
    return found


def _fault(link: Link, path: str, files: Collection[str], anchors: Mapping[str, set[str]]) -> str:
    if link.alt is not None and not link.alt.strip():
        return f"the picture {link.target!r} has no alt text"
    if not link.is_local:
        return ""
    target = link.path_from(path)
    if link.target.startswith("/"):
        return f"the link {link.target!r} is absolute: write it from the notebook's own folder"
    if target not in files and not any(name.startswith(f"{target}/") for name in files):
        return f"the link {link.target!r} does not lead to a file of the course"
    fragment = unquote(urlsplit(link.target).fragment)
    if fragment and target in anchors and fragment not in anchors[target]:
        return f"the link {link.target!r} leads to a heading that course/{target} does not have"
    return ""


def _anchors(notebook: NotebookNode) -> set[str]:
    """The headings' ids as Jupyter makes them: the text with `-` for each space."""
    found = set()
    for cell in notebook.cells:
        if cell.cell_type != "markdown":
            continue
        tokens = _MARKDOWN.parse(cell.source)
        for opening, inline in pairwise(tokens):
            if opening.type == "heading_open":
                text = "".join(child.content for child in inline.children or ())
                found.add(text.replace(" ", "-"))
    return found


def _links(token: Token) -> Iterator[Link]:
    if token.type == "link_open":
        yield Link(str(token.attrs["href"]))
    elif token.type == "image":
        yield Link(str(token.attrs["src"]), alt=token.content)
    elif token.type in ("html_block", "html_inline"):
        parser = _Tags()
        parser.feed(token.content)
        yield from parser.found
    for child in (token.children or ()) if token.type == "inline" else ():
        yield from _links(child)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Link] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "img":
            self.found.append(Link(given.get("src") or "", alt=given.get("alt") or ""))
        elif tag == "a" and given.get("href"):
            self.found.append(Link(given["href"] or ""))
        elif tag in ("source", "video", "iframe") and given.get("src"):
            self.found.append(Link(given["src"] or ""))


CHECK_PREFIX = "check-"

Sources = Mapping[str, Sequence[source_tree.Cell]]  # "03_triton/03_fuse_a_softmax.py" -> its cells


def repeated_ids(sources: Sources) -> list[str]:
    """A sentence for each grade_id that is used more than once, in one notebook or in several."""
    places: dict[str, list[str]] = defaultdict(list)
    for name, cell in _graded(sources):
        places[str(cell.nbgrader.get("grade_id", ""))].append(f"source/{name}:{cell.line}")
    return [
        f"The id {grade_id!r} is used {len(where)} times: {', '.join(where)}."
        for grade_id, where in sorted(places.items())
        if len(where) > 1
    ]


def exercise_faults(sources: Sources, exercises: Mapping[str, Exercise], unreadable: Collection[str] = ()) -> list[str]:
    """A sentence for each cell that does not fit its exercise, and each exercise without its cells.

    Cells that an `unreadable` source may hold are not reported as missing.
    """
    faults = []
    solved, checked = set(), set()
    for name, cell in _graded(sources):
        where = f"source/{name}:{cell.line}"
        grade_id = str(cell.nbgrader.get("grade_id", ""))
        if cell.nbgrader.get("solution"):
            if grade_id not in exercises:
                known = ", ".join(exercises)
                faults.append(f"{where}: the solution id {grade_id!r} is not an exercise; there are: {known}.")
                continue
            solved.add(grade_id)
            faults += [f"{where}: {fault}." for fault in _solution_faults(name, cell, exercises[grade_id])]
        elif cell.nbgrader.get("grade"):
            exercise_id = grade_id.removeprefix(CHECK_PREFIX)
            if exercise_id == grade_id or exercise_id not in exercises:
                faults.append(
                    f"{where}: a check cell's id must be `{CHECK_PREFIX}` and an exercise's id, not {grade_id!r}."
                )
                continue
            checked.add(exercise_id)
            faults += [f"{where}: {fault}." for fault in _check_faults(cell, exercises[exercise_id])]
    for exercise in exercises.values():
        home = f"{exercise.chapter}/{exercise.notebook}.py"
        if home in unreadable:
            continue
        if exercise.id not in solved:
            faults.append(f"source/{home}: the exercise {exercise.id!r} has no solution cell.")
        if exercise.id not in checked:
            faults.append(
                f"source/{home}: the exercise {exercise.id!r} has no check cell ({CHECK_PREFIX}{exercise.id})."
            )
    return faults


def _graded(sources: Sources) -> list[tuple[str, source_tree.Cell]]:
    return [(name, cell) for name, cells in sources.items() for cell in cells if cell.nbgrader]


def _solution_faults(name: str, cell: source_tree.Cell, exercise: Exercise) -> list[str]:
    home = f"{exercise.chapter}/{exercise.notebook}.py"
    faults = [] if name == home else [f"the exercise {exercise.id!r} belongs in source/{home}"]
    try:
        versions = {"solution": stubs.without_markers(cell.text), "stub": stubs.without_solutions(cell.text)}
    except SourceError:
        return faults  # reported already, because the notebook could not be made
    for version, text in versions.items():
        try:
            tree = ast.parse(text)
        except SyntaxError as error:
            faults.append(f"the {version} is not Python: line {error.lineno}, {error.msg}")
            continue
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == exercise.entry]
        signature = f"{exercise.entry}({', '.join(exercise.parameters)})"
        if not functions:
            faults.append(f"the {version} does not define `{signature}`")
        elif tuple(argument.arg for argument in functions[-1].args.args) != exercise.parameters:
            faults.append(f"the {version} defines `{exercise.entry}` with other parameters than `{signature}`")
    return faults


def _check_faults(cell: source_tree.Cell, exercise: Exercise) -> list[str]:
    faults = []
    points = cell.nbgrader.get("points")
    if points != exercise.max_points:
        given = "no points" if points is None else "1 point" if points == 1 else f"{points} points"
        faults.append(f"the cell gives {given}, the exercise {exercise.id!r} gives {exercise.max_points:g}")
    if not cell.nbgrader.get("locked"):
        faults.append("a check cell must be locked")
    if cell.text.strip() != f"check({exercise.entry})":
        faults.append(f"a check cell must hold `check({exercise.entry})` and nothing else")
    return faults
