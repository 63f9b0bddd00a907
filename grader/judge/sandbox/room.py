"""The memory that this machine, or the container that the judge runs in, has in all and has left."""

from __future__ import annotations

import contextlib
from pathlib import Path

__all__ = ["available_share", "total_bytes"]

_CGROUP = Path("/sys/fs/cgroup")  # a container sees its own limits here
_FILES = (
    ("memory.max", "memory.current", "memory.stat"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat"),
)
_CACHE = ("active_file", "inactive_file")  # pages of files: given back when memory is asked for


def total_bytes() -> int:
    """Of the machine, or of the container where that has less."""
    limit, _ = _container()
    return min(_machine()["MemTotal"], limit or _machine()["MemTotal"])


def available_share() -> float:
    """What is to be had, of all there is. No process's own figures show all that is taken."""
    machine = _machine()
    share = machine.get("MemAvailable", machine["MemTotal"]) / machine["MemTotal"]
    limit, used = _container()
    return min(share, 1 - used / limit) if limit else share


def _machine() -> dict[str, int]:
    with open("/proc/meminfo", encoding="ascii") as file:
        return {line.split(":")[0]: int(line.split()[1]) << 10 for line in file}


def _container() -> tuple[int, int]:
    """Limit and use of a container, in bytes; zeros where there is no limit."""
    for limit, used, statistics in _FILES:
        with contextlib.suppress(OSError, ValueError):
            most, now = int((_CGROUP / limit).read_text()), int((_CGROUP / used).read_text())
            lines = dict(line.split(" ", 1) for line in (_CGROUP / statistics).read_text().splitlines())
            cache = sum(int(lines.get(name, 0)) for name in _CACHE)
            return (most, max(0, now - cache)) if most < _machine()["MemTotal"] else (0, 0)
    return 0, 0
