"""Describe a submission's exception as text: its kind, a sentence, the line in the cell, and the traceback."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

from grader.worker.toolchain.compiler_errors import compiler_log, first_error

_LIMIT = 4000
_ASSERTED = "device-side assert triggered"  # all of torch's CUDA errors mention "device-side assertions"
_ILLEGAL = ("illegal memory access", "misaligned address", _ASSERTED, "unspecified launch failure")


def describe(error: BaseException, file: Path) -> dict[str, Any]:
    """Return `{"kind", "message", "line", "detail"}` of limited length; lines count from 1 in the submission."""
    error, frames = _innermost(error, file)
    line = frames[-1].lineno if frames else None
    text = str(error) or type(error).__name__
    message = f"{type(error).__name__}: {text}"
    log = compiler_log(error, file)
    kind, text = _kind(error, text) if log is None else "compile", log or text
    if kind == "not_written":
        message = "The exercise is not written yet."
    elif kind == "compile":
        found_line, found = _compiler_says(error, text)
        line, message = found_line or line, found
    elif type(error).__name__ == "StrayAccess":
        kind, message = "illegal_access", text
    elif kind == "illegal_access":
        message = "A kernel accessed memory outside of the buffers, or wrote to an input."
        if _ASSERTED in text:
            message = "An assertion in a kernel failed: an index is out of range, or a device_assert does not hold."
    detail = "".join(traceback.format_list(frames)) + text
    return {"kind": kind, "message": message[:500], "line": line, "detail": detail[-_LIMIT:]}


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
    return first_error(text)


def _line_of_kernel(kernel_source: str, line: int) -> int | None:
    try:
        whole = Path("submission.py").read_text(encoding="utf-8")
    except OSError:
        return None
    first = kernel_source.strip().split("\n")[0]
    for number, candidate in enumerate(whole.split("\n"), start=1):
        if candidate.strip() == first.strip():
            return number + line - 1
    return None
