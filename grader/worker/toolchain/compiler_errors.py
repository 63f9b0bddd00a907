"""Find the first error in a compiler's output, and the line of the learner's cell that it belongs to.

`#line` marks make g++ and nvcc report lines of the cell instead of lines of the files that `load_inline` writes. Errors
of CuPy and captured output of `nvcc` have no marks: their lines are translated afterwards.
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

CELL = "cell"  # the file name in marks with lines of the cell; other lines count from the start of their string

_PACKAGE = str(Path(__file__).parents[2])


def line_mark(source: str, name: str, cell: str) -> str:
    """Return the mark for `source`: its line in `cell` if it is one string there, otherwise line 1 of `name`."""
    line = line_in(cell, source)
    return f'#line {line} "{CELL}"\n' if line else f'#line 1 "{name}"\n'


def install_line_marks() -> None:
    """Let torch's `load_inline` mark its sources, on a machine with a GPU. A second call does nothing."""
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
    """Return `cpp_sources` or `cuda_sources` as a list."""
    return [argument] if isinstance(argument, str) else list(argument or [])


def cell_of_caller() -> str:
    """Return the source of the file or notebook cell that called into this package, or "" without one."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return "".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals)) if frame else ""


def line_in(cell: str, source: str) -> int | None:
    """Return the line of the cell on which `source` begins, if it is one literal there or a literal with changes.

    Formatted strings, filled templates and joined strings have lines in common with the cell. They count if nearly all
    of them are equally far from their lines in the cell.
    """
    try:
        tree = ast.parse(cell)
    except (SyntaxError, ValueError):
        return None
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or node.value != source or node.end_lineno is None:
            continue
        if node.end_lineno - node.lineno == source.count("\n"):  # otherwise escapes or joined strings moved the lines
            return node.lineno
    places: dict[str, list[int]] = {}
    for number, line in enumerate(cell.split("\n"), start=1):
        places.setdefault(line.strip(), []).append(number)
    apart = Counter(
        places[line.strip()][0] - at
        for at, line in enumerate(source.split("\n"))
        if line.strip() and len(places.get(line.strip(), ())) == 1
    )
    ((first, common),) = apart.most_common(1) or ((0, 0),)
    return first if first >= 1 and common >= _LEAST_ALIKE and common >= _SHARE_ALIKE * apart.total() else None


_LEAST_ALIKE, _SHARE_ALIKE = 3, 0.8
_COMPILER = re.compile(  # g++: file:5:12: error: text     nvcc: file(5): error: text, or error #20: text
    r"^(?:In file included from )?(?P<file>[^\s:(][^:(\n]*?)(?::(?P<gcc>\d+)(?::\d+)?|\((?P<nvcc>\d+)\)):\s+"
    r"(?:fatal |catastrophic )?error(?: #[\w-]+)?:\s*(?P<text>.+)$",
    re.MULTILINE,
)
_NVRTCS_HEADER = "__nv_nvrtc_builtin_header.h"  # which NVRTC reads before the source, but after the options
_MACRO_OF_OPTIONS = ", in CUDA's own header: a macro of the options, such as `-DT=float`, replaces a name that it uses"
_ELSEWHERE = re.compile(
    r"(?:ptxas (?:fatal|error)\s*:\s*(?P<ptxas>.+)|nvcc (?:fatal|error)\s*:\s*(?P<nvcc>.+)"
    r"|(?P<undefined>undefined (?:reference to|symbol:?) .+)|multiple definition of (?P<twice>.+?);?)"
    r"(?:\n|$)"
)
_ENTRY = re.compile(r"[Ee]ntry function '(\w+)'")
_MENTION = re.compile(r"(?P<file>[^\s:(]+)(?::(?P<gcc>\d+)(?::\d+)?|\((?P<nvcc>\d+)\))[:,]")
_STRINGS = {
    "cuda_source": "the CUDA source",
    "cuda.cu": "the CUDA source",
    "cpp_source": "the C++ source",
    "main.cpp": "the C++ source",
}


def first_error(text: str, cell: str = "") -> tuple[int | None, str]:
    """Return the line in the cell, if it is known, and the message of the first error of g++, nvcc, ptxas or a linker.

    Without a mark, lines count from the start of the learner's string, and the message names them. An error in a header
    is reported at the learner's line that led there, and one of ptxas at the kernel's in `cell`.
    """
    match = _COMPILER.search(text)
    if match is None:
        message = _without_line(text)
        kernel = _ENTRY.search(message)
        return _line_of_kernel(kernel[1], cell) if kernel else None, message
    message = _clean(match["text"])
    place = _place_of(match, text)
    if place is None:
        return None, message + (_MACRO_OF_OPTIONS if match["file"] == _NVRTCS_HEADER else "")
    name, line = place
    return (line, message) if name == CELL else (None, f"In {_STRINGS[name]}, line {line}: {message}")


def _line_of_kernel(symbol: str, cell: str) -> int | None:
    """Return the line on which the kernel with this symbol, perhaps a mangled one, is declared."""
    for found in re.finditer(r"\b(\w+)\s*\(", cell):
        if found[1] == symbol or f"{len(found[1])}{found[1]}" in symbol:
            return cell.count("\n", 0, found.start()) + 1
    return None


def _only_line(wanted: str, cell: str) -> int | None:
    alike = [at for at, line in enumerate(cell.split("\n"), start=1) if line.strip() == wanted.strip()]
    return alike[0] if wanted.strip() and len(alike) == 1 else None


def place_of_error(text: str) -> str:
    """Return the learner's place of the first error, as a compiler's message begins, or "" if it is unknown."""
    match = _COMPILER.search(text)
    if match is None:
        return ""
    name, line = _place_of(match, text) or (match["file"], int(match["gcc"] or match["nvcc"]))
    return f"{name}:{line}:1: error: "


def _place_of(match: re.Match[str], text: str) -> tuple[str, int] | None:
    """Return the learner's file and line of an error: those of its mention that led to a header, if it is in one."""
    if place := _place(match):
        return place
    before = [found for found in map(_place, _MENTION.finditer(text, 0, match.start())) if found]
    after = [found for found in map(_place, _MENTION.finditer(text, match.end())) if found]
    return before[-1] if before else after[0] if after else None


def _place(match: re.Match[str]) -> tuple[str, int] | None:
    """Return the learner's file that a match names, and its line."""
    name = match["file"].strip().rsplit("/", 1)[-1]
    return (name, int(match["gcc"] or match["nvcc"])) if name == CELL or name in _STRINGS else None


def _without_line(text: str) -> str:
    if found := _ELSEWHERE.search(text):
        if found["twice"]:
            return f"{found['twice'].strip()} is defined twice"
        return _clean(next(group for group in found.groups() if group))
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["The compiler gave no reason."]
    return next((line for line in lines if "error" in line.lower()), lines[0])


def _clean(message: str) -> str:
    return message.strip().replace("‘", "'").replace("’", "'")


_PLACE = re.compile(r"^[^\s:(]*\.cu(?:\((?P<nvcc>\d+)\)|:(?P<gcc>\d+):\d+)", re.MULTILINE)
_UNPLACED = "cuda_source"


def compiler_log(error: BaseException, file: Path) -> str | None:
    """Return the log of CuPy's `CompileException`, or of a failed `nvcc` whose output was captured."""
    if type(error).__name__ == "CompileException":
        source = getattr(error, "source", "")
        return _placed(str(error), source if isinstance(source, str) else "", _text(file))
    command, output = getattr(error, "cmd", None), getattr(error, "stderr", None)
    if type(error).__name__ != "CalledProcessError" or not isinstance(command, Sequence) or not output:
        return None
    words = [str(word) for word in ([command] if isinstance(command, str) else command)]
    if not words or words[0].rpartition("/")[2] != "nvcc":
        return None
    sources = [Path(word) for word in words if word.endswith(".cu")]
    log = output.decode("utf-8", "replace") if isinstance(output, bytes) else str(output)
    return _placed(log, _text(sources[0]) if sources else "", _text(file))


def _placed(log: str, source: str, cell: str) -> str:
    def place(found: re.Match[str]) -> str:
        number = int(found["nvcc"] or found["gcc"])
        line = _line_of(number, source, cell)
        return f"{CELL}({line})" if line else f"{_UNPLACED}({number})"

    return _PLACE.sub(place, log)


def _line_of(number: int, source: str, cell: str) -> int | None:
    """Return the cell's line, if the source is one string there; otherwise that of the only identical line."""
    if first := line_in(cell, source):
        return first + number - 1
    lines = source.split("\n")
    return _only_line(lines[number - 1], cell) if number <= len(lines) else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
