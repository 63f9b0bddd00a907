"""What NVRTC and nvcc say of a source that Python handed to them, with the lines of the cell it stands in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from grader.worker.cuda_on_cpu.lines import CELL, line_in

__all__ = ["compiler_log"]

_PLACE = re.compile(r"^[^\s:(]*\.cu(?:\((?P<nvcc>\d+)\)|:(?P<gcc>\d+):\d+)", re.MULTILINE)
_ELSEWHERE = "cuda_source"


def compiler_log(error: BaseException, file: Path) -> str | None:
    """The log behind a `CompileException` of CuPy's, or behind an `nvcc` that failed and whose output was kept."""
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
        return f"{CELL}({line})" if line else f"{_ELSEWHERE}({number})"

    return _PLACE.sub(place, log)


def _line_of(number: int, source: str, cell: str) -> int | None:
    """The cell's line: of a source that stands there as one string, or else the only line that reads the same."""
    if first := line_in(cell, source):
        return first + number - 1
    lines = source.split("\n")
    wanted = lines[number - 1].strip() if number <= len(lines) else ""
    alike = [at for at, line in enumerate(cell.split("\n"), start=1) if line.strip() == wanted]
    return alike[0] if wanted and len(alike) == 1 else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
