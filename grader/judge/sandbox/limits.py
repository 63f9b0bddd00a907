"""Every limit of a cage, in one place: far above what an honest submission takes, far below what harms the machine."""

from __future__ import annotations

import os

from grader.judge.sandbox.room import total_bytes

__all__ = [
    "FILES",
    "HOME_BYTES",
    "MEMORY_BYTES",
    "MORE_TASKS",
    "SHARED_BYTES",
    "TASKS",
    "TEMP_BYTES",
    "THREADS",
    "rlimits",
]

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
