"""A control group for a cage's memory and tasks, where this system lets us make one (version 2, root or delegated)."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import subprocess
import time
from pathlib import Path

from grader.judge.sandbox.limits import MEMORY_BYTES, MORE_TASKS, TASKS

__all__ = ["entering", "make", "ran_out_of_memory", "remove"]

_PREFIX = "grader-"
_NEEDED = {"memory", "pids"}
_number = itertools.count()


def make() -> Path | None:
    """A new group with its limits set, or None where this system has none for us."""
    parent = _parent()
    return None if parent is None else _child(parent)


def entering(group: Path | None, command: list[str]) -> list[str]:
    """The command that runs `command` in the group from its first instruction on."""
    if group is None:
        return command
    return ["/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"', str(group / "cgroup.procs"), *command]


def ran_out_of_memory(group: Path | None) -> bool:
    """Whether the kernel ended it for its memory."""
    with contextlib.suppress(OSError, TypeError, ValueError):
        events = dict(line.split() for line in Path(group or "", "memory.events").read_text().splitlines())
        return int(events.get("oom_kill", 0)) > 0
    return False


def remove(group: Path | None) -> None:
    """To be called once its processes have ended; the kernel may take a moment to see that."""
    for _ in range(100 if group else 0):
        try:
            os.rmdir(group or "")
            return
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.005)


@functools.cache
def _parent() -> Path | None:
    """The nearest group above us in which we can make one with limits. Decided by doing it."""
    for group in _above():
        with contextlib.suppress(OSError):
            if not set((group / "cgroup.subtree_control").read_text().split()) >= _NEEDED:
                continue
            _tidy(group)
            child = _child(group)
            try:
                trial = subprocess.run(entering(child, ["true"]), capture_output=True, timeout=20, check=False)
                if trial.returncode == 0:
                    return group
            finally:
                remove(child)
    return None


def _child(parent: Path) -> Path:
    group = parent / f"{_PREFIX}{os.getpid()}-{next(_number)}"
    group.mkdir()
    try:
        for name, value in (("memory.max", MEMORY_BYTES), ("memory.oom.group", 1), ("pids.max", TASKS + MORE_TASKS)):
            (group / name).write_text(str(value))
        with contextlib.suppress(OSError):  # absent where there is no swap
            (group / "memory.swap.max").write_text("0")
    except OSError:
        remove(group)
        raise
    return group


def _above() -> list[Path]:
    """Our own group and those above it, as far as they are mounted and ours to make groups in."""
    try:
        mounts = [line.split(" - ") for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        own = next(line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::"))
    except (OSError, StopIteration):
        return []
    places = [before.split()[3:5] for before, after in mounts if after.startswith("cgroup2 ")]
    for root, place in places:
        if root == "/" and ".." not in own.split("/"):
            groups = [Path(place + own.rstrip("/"))]
            while groups[-1] != Path(place):
                groups.append(groups[-1].parent)
            return [group for group in groups if os.access(group / "cgroup.procs", os.W_OK)]
    return []


def _tidy(parent: Path) -> None:
    """Removes what a judge left behind that was killed."""
    for group in parent.glob(f"{_PREFIX}*-*"):
        owner = group.name.removeprefix(_PREFIX).split("-")[0]
        if not os.path.exists(f"/proc/{owner}"):
            with contextlib.suppress(OSError):
                os.rmdir(group)
