"""Whether a line of a solution stands anywhere in `course/`.

Lines are compared without white space, so that an indent or a line break hides nothing, and without a comment at
their end. Not counted are trivial lines (short ones, imports, pragmas) and those that an author shows on purpose: in a
code cell of some source notebook, outside of the solution regions. Prose does not excuse a line. A place that holds
most of one solution is a leak even when each of its lines is shown somewhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from grader.authoring import percent, stubs

__all__ = ["find", "solutions", "trivial"]

SHORTEST = 12  # characters without white space; shorter lines (`else:`, `return out`) say nothing
COPIED_SHARE = 0.8  # of a solution's lines in one place, and at least COPIED_LINES: a copy
COPIED_LINES = 3

_COMMENT = re.compile(r"\s+(#|//)\s.*$")
_IMPORT = re.compile(r"^\s*(import\s|from\s+\S+\s+import\s|#include\b|#pragma\b)")


def solutions(sources: Mapping[str, Sequence[percent.Cell]]) -> dict[str, list[str]]:
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


def find(files: Mapping[str, bytes], sources: Mapping[str, Sequence[percent.Cell]]) -> dict[str, list[str]]:
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
                standing = [line for line in lines if line in squeezed]
                loose = [line for line in standing if line not in excused]
                copied = len(standing) >= max(COPIED_LINES, COPIED_SHARE * len(lines))
                for line in loose if not copied else ():
                    leaks.setdefault(path, []).append(
                        f"course/{path}, {place}: a line of the solution of {key!r} stands here: {lines[line]!r}."
                    )
                if copied:
                    leaks.setdefault(path, []).append(
                        f"course/{path}, {place}: {len(standing)} of the {len(lines)} lines of the solution of {key!r} "
                        f"stand here, from {lines[standing[0]]!r} on."
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
