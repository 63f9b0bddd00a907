"""`#line` marks, so that g++ and nvcc name lines of the learner's cell and not of the files that `load_inline` writes."""

from __future__ import annotations

import ast
import linecache
import sys
from pathlib import Path
from types import FrameType

__all__ = ["CELL", "cell_of_caller", "line_mark"]

CELL = "cell"  # the file name in marks whose lines are the cell's; others count from the start of their string

_OURS = str(Path(__file__).parents[1])


def line_mark(source: str, name: str, cell: str) -> str:
    """The mark that goes before `source`: its place in `cell`, where it stands there as one string, else line 1 of `name`."""
    line = _line_in(cell, source)
    return f'#line {line} "{CELL}"\n' if line else f'#line 1 "{name}"\n'


def cell_of_caller() -> str:
    """The source of the file or notebook cell that called into this package; empty where it has none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    return "".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals)) if frame else ""


def _line_in(cell: str, source: str) -> int | None:
    try:
        tree = ast.parse(cell)
    except (SyntaxError, ValueError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value == source and node.end_lineno is not None:
            if node.end_lineno - node.lineno == source.count("\n"):  # else escapes or joined strings moved the lines
                return node.lineno
    return None
