"""A control group for a cage's memory and tasks, where this system lets us make one (version 2, root or delegated)."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import subprocess
import time
from pathlib import Path

# The memory that this machine, or the container that the judge runs in, has in all and has left.

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


# Every limit of a cage, in one place: far above what an honest submission takes, far below what harms the machine.

MIB, GIB = 1 << 20, 1 << 30

HOME_BYTES = GIB  # a build of load_inline leaves 10 MB, its temporary files some hundred
TEMP_BYTES = 256 * MIB  # TMPDIR lies in the home; /tmp is for programs that do not ask
SHARED_BYTES = 256 * MIB  # /dev/shm; containers get 64 MB
MEMORY_BYTES = min(16 * GIB, total_bytes() // 2)  # of the whole tree
FILES = 16_384  # descriptors of the whole tree: an honest one has some hundred, and each look goes through them all
TASKS = 1024  # processes and threads: nvcc under ninja takes tens, CUDA and torch some threads for each core
MORE_TASKS = 128  # before the kernel refuses one: the judge is to see, and say, that there are too many
THREADS = min(8, len(os.sched_getaffinity(0)))  # of each thread pool: on 128 cores, pools of 128 are the wait at import

_UNTOUCHED_BYTES = 16 * GIB  # what CUDA and torch reserve as writable and never touch
_CPU_S = 3600  # of one process: whoever is forgotten ends
_OPEN_FILES = 1024  # also bounds what sockets and pipes hold
_STACK_BYTES = 8 * MIB, 64 * MIB  # gcc raises its own to 64 MiB
_LOCKED_BYTES = 64 * MIB  # CUDA pins memory through its driver, which does not count here


def rlimits(tasks: int) -> list[tuple[str, int, int]]:
    """Names in the module `resource`, soft and hard limits.

    Address space (RLIMIT_AS) has none: CUDA reserves more than the machine has.
    """
    same = {
        "NPROC": tasks + MORE_TASKS,
        "FSIZE": HOME_BYTES,
        "CORE": 0,
        "NOFILE": _OPEN_FILES,
        "CPU": _CPU_S,
        "DATA": MEMORY_BYTES + _UNTOUCHED_BYTES,
        "MEMLOCK": _LOCKED_BYTES,
        "MSGQUEUE": 0,
        "RTPRIO": 0,
        "NICE": 0,
        "SIGPENDING": TASKS,
    }
    return [*((name, value, value) for name, value in same.items()), ("STACK", *_STACK_BYTES)]


# A control group for a cage's memory and tasks, where this system lets us make one (version 2, root or delegated).

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
