"""The first error in what g++, nvcc, ptxas or the linker printed, as a line and a sentence."""

from __future__ import annotations

import re

from grader.worker.cuda_on_cpu.lines import CELL

__all__ = ["first_error"]

_COMPILER = re.compile(  # g++: file:5:12: error: text     nvcc: file(5): error: text, or error #20: text
    r"^(?:In file included from )?(?P<file>[^\s:(][^:(\n]*?)(?::(?P<gcc>\d+)(?::\d+)?|\((?P<nvcc>\d+)\)):\s+"
    r"(?:fatal |catastrophic )?error(?: #[\w-]+)?:\s*(?P<text>.+)$",
    re.MULTILINE,
)
_ELSEWHERE = re.compile(
    r"(?:ptxas (?:fatal|error)\s*:\s*(?P<ptxas>.+)|nvcc (?:fatal|error)\s*:\s*(?P<nvcc>.+)"
    r"|(?P<undefined>undefined (?:reference to|symbol:?) .+)|multiple definition of (?P<twice>.+?);?)"
    r"(?:\n|$)"
)
_MENTION = re.compile(r"(?P<file>[^\s:(]+)(?::(?P<gcc>\d+)(?::\d+)?|\((?P<nvcc>\d+)\))[:,]")
_STRINGS = {
    "cuda_source": "the CUDA source",
    "cuda.cu": "the CUDA source",
    "cpp_source": "the C++ source",
    "main.cpp": "the C++ source",
}


def first_error(text: str) -> tuple[int | None, str]:
    """The first error's line in the cell, if that is known, and what is wrong.

    Lines are those of the cell where the source was marked (`line_mark`). Otherwise they count from the start of the
    learner's string, and stand in the sentence. An error within a header is put at the learner's line that led there.
    """
    match = _COMPILER.search(text)
    if match is None:
        return None, _without_line(text)
    message = _clean(match["text"])
    place = _place(match)
    if place is None:
        before = [found for found in map(_place, _MENTION.finditer(text, 0, match.start())) if found]
        behind = [found for found in map(_place, _MENTION.finditer(text, match.end())) if found]
        place = before[-1] if before else behind[0] if behind else None
    if place is None:
        return None, message
    name, line = place
    return (line, message) if name == CELL else (None, f"In {_STRINGS[name]}, line {line}: {message}")


def _place(match: re.Match[str]) -> tuple[str, int] | None:
    """The learner's file that a match names, and its line."""
    name = match["file"].strip().rsplit("/", 1)[-1]
    return (name, int(match["gcc"] or match["nvcc"])) if name == CELL or name in _STRINGS else None


def _without_line(text: str) -> str:
    if found := _ELSEWHERE.search(text):
        twice = found["twice"]
        return (
            f"{twice.strip()} is defined twice" if twice else _clean(next(group for group in found.groups() if group))
        )
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next(
        (line for line in lines if "error" in line.lower()), lines[0] if lines else "The compiler gave no reason."
    )


def _clean(message: str) -> str:
    return message.strip().replace("‘", "'").replace("’", "'")
