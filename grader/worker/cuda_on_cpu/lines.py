"""`#line` marks, so that g++ and nvcc name lines of the learner's cell, not of the files that `load_inline` writes."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

__all__ = ["CELL", "cell_of_caller", "install_line_marks", "line_in", "line_mark", "sources_of"]

CELL = "cell"  # the file name in marks whose lines are the cell's; others count from the start of their string

_OURS = str(Path(__file__).parents[1])


def line_mark(source: str, name: str, cell: str) -> str:
    """The mark for `source`: its place in `cell`, where it stands there as one string, else line 1 of `name`."""
    line = line_in(cell, source)
    return f'#line {line} "{CELL}"\n' if line else f'#line 1 "{name}"\n'


def install_line_marks() -> None:
    """On a machine with a GPU: has torch's `load_inline` mark what it compiles. A second call does nothing."""
    from torch.utils import cpp_extension

    if not hasattr(cpp_extension.load_inline, "__wrapped__"):
        cpp_extension.load_inline = _marking(cpp_extension.load_inline)


def _marking(original: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def load_inline(*args: Any, **kwargs: Any) -> Any:
        call = signature.bind(*args, **kwargs).arguments
        cell = cell_of_caller()
        for parameter, name in (("cpp_sources", "cpp_source"), ("cuda_sources", "cuda_source")):
            if marked := [line_mark(source, name, cell) + source for source in sources_of(call.get(parameter))]:
                call[parameter] = marked
        if call.get("functions"):
            call["cpp_sources"] = [*call["cpp_sources"], '#line 1 "binding"']
        return original(**call)

    return load_inline


def sources_of(argument: str | list[str] | None) -> list[str]:
    """`cpp_sources` or `cuda_sources` as a list, in whichever form it was given."""
    return [argument] if isinstance(argument, str) else list(argument or [])


def cell_of_caller() -> str:
    """The source of the file or notebook cell that called into this package; empty where it has none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    return "".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals)) if frame else ""


def line_in(cell: str, source: str) -> int | None:
    """The line of the cell on which the string `source` begins, where it stands there as one."""
    try:
        tree = ast.parse(cell)
    except (SyntaxError, ValueError):
        return None
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or node.value != source or node.end_lineno is None:
            continue
        if node.end_lineno - node.lineno == source.count("\n"):  # else escapes or joined strings moved the lines
            return node.lineno
    return None
