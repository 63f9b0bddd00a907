"""Describe a submission's exception as text: its kind, a sentence, the line in the cell, and the traceback."""

from __future__ import annotations

import re
import traceback
from pathlib import Path
from typing import Any

from grader.worker.simulator.lacks import said_by, said_in
from grader.worker.toolchain.compiler_errors import compiler_log, first_error

_LIMIT = 4000
_ASSERTED = "device-side assert triggered"  # all of torch's CUDA errors mention "device-side assertions"
# The simulator's sentences about a kernel's accesses. They name lines of the submission.
_SEEN = re.compile(r"\b(Race|Outside|Misaligned|Host|Unfinished): .+", re.DOTALL)
_LINE = re.compile(r" on line (\d+)")
_ILLEGAL = ("illegal memory access", "misaligned address", _ASSERTED, "unspecified launch failure")


def describe(error: BaseException, file: Path) -> dict[str, Any]:
    """Return `{"kind", "message", "line", "detail"}` of limited length; lines count from 1 in the submission."""
    whole = error
    error, frames = _innermost(error, file)
    line = frames[-1].lineno if frames else None
    text = str(error) or type(error).__name__
    message = f"{type(error).__name__}: {error}".removesuffix(": ")
    log = compiler_log(error, file)
    kind, text = _kind(error, text) if log is None else "compile", log or text
    if not_simulated := said_in(text) or said_by(whole):
        kind, (message, line) = "not_simulated", (not_simulated[0], not_simulated[1] or first_error(text)[0] or line)
    elif kind == "not_written":
        message = "The exercise is not written yet."
    elif kind == "compile":
        found_line, found = _compiler_says(error, text)
        line, message = found_line or line, found
    elif type(error).__name__ == "StrayAccess":
        kind, message = "illegal_access", text
    elif kind == "exception":
        line = _line_in_kernel(text, _cell(file)) or line
    elif kind == "illegal_access":
        message = "A kernel accessed memory outside of the buffers, or wrote to an input."
        if _ASSERTED in text:
            message = "An assertion in a kernel failed: an index is out of range, or a device_assert does not hold."
    if log is None and (seen := accesses_in(text)):
        return seen | {"detail": ""}
    detail = "".join(traceback.format_list(frames)) + text
    return {"kind": kind, "message": message[:500], "line": line, "detail": detail[-_LIMIT:]}


_ON_LINE = re.compile(r"(?P<call>\w+|The launch|The kernel launched)(?:\(\))? on line (?P<line>\d+)")


def _line_in_kernel(text: str, cell: str) -> int | None:
    """Return the line of the CUDA C++ that the simulator's sentence names, if the call is on that line of the cell.

    Otherwise the report would show the line of Python that raised the kernel's error. Lines of a source that is not one
    string in the cell count from its start.
    """
    lines = cell.split("\n")
    for found in _ON_LINE.finditer(text):
        call, number = "<<<" if found["call"].startswith("The ") else found["call"], int(found["line"])
        if 1 <= number <= len(lines) and call in lines[number - 1]:
            return number
    return None


def _cell(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError:
        return ""


def accesses_in(text: str) -> dict[str, Any] | None:
    """The failure that the simulator of CUDA C++ describes in this text, or None."""
    found = _SEEN.search(text)
    if found is None:
        return None
    line = _LINE.search(found[0])
    kind = "fails_on_gpu" if found[1] in ("Race", "Unfinished") else "illegal_access"
    return {"kind": kind, "message": found[0].strip()[:500], "line": int(line[1]) if line else None}


def overflow_in(text: str) -> dict[str, Any] | None:
    """The overflow of an integer that the simulator of CUDA C++ describes in this text, or None."""
    return {"kind": "overflow", "message": text} if text.startswith("Overflow: ") else None


def _innermost(error: BaseException, file: Path) -> tuple[BaseException, list[traceback.FrameSummary]]:
    """Return the exception to show, and its frames in the submission.

    Triton's interpreter wraps a kernel's exception, and its frames end at the launch. The cause has the kernel's line.
    """
    shown, frames = error, _frames(error, file)
    cause = error.__cause__
    while cause is not None and type(error).__name__ == "InterpreterError":
        if inner := _frames(cause, file):
            shown, frames = cause, inner
        cause = cause.__cause__
    return shown, frames


def _frames(error: BaseException, file: Path) -> list[traceback.FrameSummary]:
    return [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).name == file.name]


def _kind(error: BaseException, text: str) -> str:
    if isinstance(error, NotImplementedError) and "not written yet" in text:
        return "not_written"
    if any(sign in text for sign in _ILLEGAL):
        return "illegal_access"
    if type(error).__name__ in ("CompilationError", "CompileTimeAssertionFailure", "UnsupportedLanguageConstruct"):
        return "compile"
    if "Error building extension" in text or "nvrtc" in text.lower():
        return "compile"
    return "exception"


def _compiler_says(error: BaseException, text: str) -> tuple[int | None, str]:
    """Return the line in the cell and the message of the first error that a compiler reported."""
    node, source = getattr(error, "node", None), getattr(error, "src", None)
    if node is not None and source is not None:  # Triton's lines count from the kernel's decorator
        message = getattr(error, "error_message", None) or text.strip().splitlines()[-1]
        cause = error.__cause__
        if cause is not None and not getattr(error, "error_message", None):
            message = f"{type(cause).__name__}: {cause}"
        return _line_of_kernel(source, getattr(node, "lineno", 1)), str(message)
    return first_error(text, _cell(Path("submission.py")))


def _line_of_kernel(kernel_source: str, line: int) -> int | None:
    first = kernel_source.strip().split("\n")[0]
    for number, candidate in enumerate(_cell(Path("submission.py")).split("\n"), start=1):
        if candidate.strip() == first.strip():
            return number + line - 1
    return None
