"""The sandbox's limits, the memory of this machine, and a control group (version 2) for memory and processes.

A control group is used if the system lets the judge create one: as root, or in a delegated group.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import subprocess
import time
from pathlib import Path

# The memory of this machine, or of the container that the judge runs in.

_CGROUP = Path("/sys/fs/cgroup")  # a container sees its own limits here
_FILES = (
    ("memory.max", "memory.current", "memory.stat"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat"),
)
_CACHE = ("active_file", "inactive_file")  # file cache, which the kernel frees on demand


def total_bytes() -> int:
    """Memory of the machine, or of the container if that has less."""
    limit, _ = _container()
    return min(_machine()["MemTotal"], limit or _machine()["MemTotal"])


def available_share() -> float:
    """The share of all memory that is available."""
    machine = _machine()
    share = machine.get("MemAvailable", machine["MemTotal"]) / machine["MemTotal"]
    limit, used = _container()
    return min(share, 1 - used / limit) if limit else share


def _machine() -> dict[str, int]:
    with open("/proc/meminfo", encoding="ascii") as file:
        return {line.split(":")[0]: int(line.split()[1]) << 10 for line in file}


def _container() -> tuple[int, int]:
    """The container's limit and usage in bytes; zeros without a limit."""
    for limit, used, statistics in _FILES:
        with contextlib.suppress(OSError, ValueError):
            most, now = int((_CGROUP / limit).read_text()), int((_CGROUP / used).read_text())
            lines = dict(line.split(" ", 1) for line in (_CGROUP / statistics).read_text().splitlines())
            cache = sum(int(lines.get(name, 0)) for name in _CACHE)
            return (most, max(0, now - cache)) if most < _machine()["MemTotal"] else (0, 0)
    return 0, 0


# The limits: far above what an honest submission needs, far below what harms the machine.

MIB, GIB = 1 << 20, 1 << 30

HOME_BYTES = GIB  # a build with load_inline leaves 10 MB and needs some 100 MB meanwhile
TEMP_BYTES = 256 * MIB  # TMPDIR is in the home; /tmp is for programs that ignore it
SHARED_BYTES = 256 * MIB  # /dev/shm; containers get 64 MB
MEMORY_BYTES = min(16 * GIB, total_bytes() // 2)  # of all processes together
FILES = 16_384  # open descriptors of all processes: an honest one has some hundred, and each check visits them all
TASKS = 1024  # processes and threads: nvcc under ninja needs tens, CUDA and torch some per core
MORE_TASKS = 128  # the kernel's limit is higher, so that the judge sees and reports the excess
THREADS = min(8, len(os.sched_getaffinity(0)))  # per thread pool: with 128 each, importing torch is slow

_UNTOUCHED_BYTES = 16 * GIB  # reserved as writable by CUDA and torch, but never touched
_CPU_S = 3600  # per process, so that a forgotten one ends
_OPEN_FILES = 1024  # also bounds the memory in sockets and pipes
_STACK_BYTES = 8 * MIB, 64 * MIB  # gcc raises its own to 64 MiB
_LOCKED_BYTES = 64 * MIB  # memory that CUDA's driver pins does not count


def rlimits(tasks: int) -> list[tuple[str, int, int]]:
    """Names in the module `resource` with soft and hard limits.

    RLIMIT_AS is not set: CUDA reserves more address space than the machine has memory.
    """
    same = {
        "NPROC": tasks + MORE_TASKS, "FSIZE": HOME_BYTES, "CORE": 0, "NOFILE": _OPEN_FILES, "CPU": _CPU_S,
        "DATA": MEMORY_BYTES + _UNTOUCHED_BYTES, "MEMLOCK": _LOCKED_BYTES, "MSGQUEUE": 0, "RTPRIO": 0, "NICE": 0,
        "SIGPENDING": TASKS,
    }  # fmt: skip
    return [*((name, value, value) for name, value in same.items()), ("STACK", *_STACK_BYTES)]


# The control group.

_PREFIX = "grader-"
_NEEDED = {"memory", "pids"}
_number = itertools.count()


def make() -> Path | None:
    """A new control group with its limits set, or None if the system does not allow one."""
    parent = _parent()
    return None if parent is None else _child(parent)


def entering(group: Path | None, command: list[str]) -> list[str]:
    """A command that enters the group and then runs `command`."""
    if group is None:
        return command
    return ["/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"', str(group / "cgroup.procs"), *command]


def ran_out_of_memory(group: Path | None) -> bool:
    """Whether the kernel killed a process of the group for exceeding its memory."""
    with contextlib.suppress(OSError, TypeError, ValueError):
        events = dict(line.split() for line in Path(group or "", "memory.events").read_text().splitlines())
        return int(events.get("oom_kill", 0)) > 0
    return False


def remove(group: Path | None) -> None:
    """Remove the group of ended processes; the kernel may take a moment to allow it."""
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
    """The nearest parent group in which the judge can create one with limits, found by trying."""
    for group in _above():
        with contextlib.suppress(OSError):
            if not set((group / "cgroup.subtree_control").read_text().split()) >= _NEEDED:
                continue
            _remove_abandoned(group)
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
        with contextlib.suppress(OSError):  # absent without swap
            (group / "memory.swap.max").write_text("0")
    except OSError:
        remove(group)
        raise
    return group


def _above() -> list[Path]:
    """This process's group and its parents, if they are mounted and writable."""
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


def _remove_abandoned(parent: Path) -> None:
    """Remove the groups of judges that were killed."""
    for group in parent.glob(f"{_PREFIX}*-*"):
        owner = group.name.removeprefix(_PREFIX).split("-")[0]
        if not os.path.exists(f"/proc/{owner}"):
            with contextlib.suppress(OSError):
                os.rmdir(group)
