"""Count what simulated launches do: programs, and the bytes and sectors that each line moves. Note what the host does.

Nothing is counted outside of `counting` and `host_work`, so that the cases of a grading take no longer.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

__all__ = [
    "FILE", "access", "counting", "host", "host_work", "interpreting", "is_counting", "launched", "line_of_submission",
    "loop_of_some", "own_work", "warp",
]  # fmt: skip

_SECTOR_BYTES = 32
_MOST_LAUNCHES, _MOST_LINES = 64, 64  # of one call that are kept apart
FILE = "submission.py"
_GRAPH = "<eval_with_key>"  # the file of a graph's code, by torch.fx

interpreting = False  # whether the simulator calls torch itself: to copy a launch's tensors, or to fill an empty one

_kept: list[dict[str, Any]] | None = None
_lines: dict[tuple[Any, ...], dict[str, Any]] = {}  # of the launch that runs
_warps: list[dict[str, Any]] = []  # of its first warp
_of_host: dict[tuple[str, str, int], int] | None = None
_tensors: dict[int, int] = {}  # numbers of a call's tensors, by the address of their first element
_partly: list[dict[str, Any]] = []  # its long loops of some lanes


@contextlib.contextmanager
def counting() -> Iterator[list[dict[str, Any]]]:
    """Collect the launches of this process: kernel, line, grid, threads, how often, and the accesses by line."""
    global _kept
    _kept = []
    _lines.clear()
    _warps.clear()
    _tensors.clear()
    _partly.clear()
    try:
        yield _kept
    finally:
        _kept = None


def access(kind: str, name: str, line: int | None, addresses: Any, width: int, idle: int, origin: int) -> None:
    """Count one access of a program: the addresses of its elements, the bytes of each, and how many are masked out.

    `origin` is the address of the tensor's first element, which tells tensors apart: kernels name their own parameters.
    """
    if _kept is None or len(_lines) > _MOST_LINES:
        return
    key = (kind, name, line)
    empty = {"kind": kind, "name": name, "line": line, "count": 0, "elements": 0, "bytes": 0, "fetched": 0, "idle": 0}
    found = _lines.setdefault(key, empty | {"tensor": _tensors.setdefault(origin, len(_tensors) + 1)})
    found["count"] += 1
    found["elements"] += int(addresses.size)
    found["idle"] += idle
    found["bytes"] += int(addresses.size) * width
    found["fetched"] += _SECTOR_BYTES * int(np.unique(addresses // np.uint64(_SECTOR_BYTES)).size)


@contextlib.contextmanager
def host_work() -> Iterator[list[dict[str, Any]]]:
    """Collect what `host` notes: the kind of work, what was called, the line, and how often."""
    global _of_host
    _of_host = {}
    collected: list[dict[str, Any]] = []
    try:
        yield collected
    finally:
        for (kind, name, line), count in _of_host.items():
            collected.append({"kind": kind, "name": name, "line": line, "count": count})
        _of_host = None


def host(kind: str, name: str) -> None:
    """Note work that a submission asks of the host: "waits", "builds" a kernel or "asks" for properties."""
    line = line_of_submission() if _of_host is not None else None
    if _of_host is not None and line and len(_of_host) < _MOST_LINES:
        _of_host[kind, name, line] = _of_host.get((kind, name, line), 0) + 1


def is_counting() -> bool:
    """Return whether anything is counted."""
    return _kept is not None


def warp(kind: str, shared: bool, line: int, units: float, size: int, count: int) -> None:
    """Count the accesses of a launch's first warp in a line: sectors, or lanes in one bank, per access.

    `size` is bytes per lane.
    """
    if _kept is not None and len(_warps) < _MOST_LINES:
        name = "shared" if shared else "global"
        known = {"kind": kind, "name": name, "line": line}
        _warps.append(known | {"units": units, "size": size, "count": count})


def loop_of_some(line: int, lanes: int, turns: int) -> None:
    """Count a long loop that only some lanes of a launch's first warp run: these as bits, and its turns."""
    if _kept is not None and len(_partly) < _MOST_LINES:
        _partly.append({"line": line, "lanes": lanes, "turns": turns})


def launched(kernel: str, grid: tuple[int, ...], threads: int, line: int | None = None, **counts: int) -> None:
    """Count a launch that has ended, with the accesses since the last one, and other counts."""
    if _kept is None:
        return
    accesses, warps, partly = list(_lines.values()), _warps[:], _partly[:]
    _lines.clear()
    _warps.clear()
    _partly.clear()
    same = [each for each in _kept if (each["kernel"], each["line"]) == (kernel, line)]
    found = same[-1] if same else None
    if found is None:
        if len(_kept) < _MOST_LAUNCHES:
            known = {"kernel": kernel, "line": line, "grid": list(grid), "threads": threads, "count": 1}
            _kept.append(known | counts | {"accesses": accesses, "warps": warps, "partly": partly})
        return
    found["count"] += 1
    before = {(each["kind"], each["name"], each["line"]): each for each in found["accesses"]}
    for one in accesses:
        into = before.get((one["kind"], one["name"], one["line"]))
        if into is None:
            found["accesses"].append(one)
            continue
        for key in ("count", "elements", "bytes", "fetched", "idle"):
            into[key] += one[key]


@contextlib.contextmanager
def own_work() -> Iterator[None]:
    """Count no operations of torch meanwhile: they are the simulator's."""
    global interpreting
    before, interpreting = interpreting, True
    try:
        yield
    finally:
        interpreting = before


def line_of_submission() -> int | None:
    """Return the innermost line of the submission that runs now; a captured graph, which a GPU fuses, has none."""
    frame: Any = sys._getframe(1)
    while frame is not None and not frame.f_code.co_filename.endswith(FILE):
        frame = None if frame.f_code.co_filename.startswith(_GRAPH) else frame.f_back
    return None if frame is None else int(frame.f_lineno)
