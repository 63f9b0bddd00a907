"""The first code in a sandbox: it sets limits, drops every privilege, then runs the worker's code.

Its source is passed to `python -c`, because a sandbox shows none of the judge's files. So it imports nothing of the
grader.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import struct
import sys
from typing import Any

PDEATHSIG, DUMPABLE, CAPBSET_DROP, SUBREAPER, NO_NEW_PRIVS = 1, 4, 24, 36, 38  # linux/prctl.h
CAPABILITIES_V3 = 0x20080522

libc = ctypes.CDLL(None, use_errno=True)


def enter(cage: dict[str, Any]) -> None:
    """Apply the restrictions in `cage`, then run its code. An OSError ends it before any submission runs."""
    if not cage["locked"]:
        _supervise(cage["fds"])
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")  # out of memory, the kernel ends this process before the judge
    for name, soft, hard in cage["rlimits"]:
        _limit(getattr(resource, f"RLIMIT_{name}"), soft, hard)
    if cage["locked"]:
        _prctl(NO_NEW_PRIVS, 1)
        _drop(cage["uid"])
    os.chdir(os.environ["HOME"])
    os.makedirs(os.environ["TMPDIR"], exist_ok=True)
    sys.path[:] = [*cage["path"], *filter(os.path.exists, sys.path)]  # an editable install adds its checkout
    exec(compile(cage["code"], "<worker>", "exec"), {"__name__": "__main__"})


def _limit(which: int, soft: int, hard: int) -> None:
    present = resource.getrlimit(which)[1]
    if present != resource.RLIM_INFINITY:
        soft, hard = min(soft, present), min(hard, present)
    resource.setrlimit(which, (soft, hard))


def _drop(uid: int | None) -> None:
    """Become another user, if one is given, and drop every capability, also for programs started later."""
    capability = 0
    while libc.prctl(CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0) == 0:
        capability += 1
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    header = ctypes.create_string_buffer(struct.pack("Ii", CAPABILITIES_V3, 0))
    _check(libc.capset(header, ctypes.create_string_buffer(24)))
    _prctl(DUMPABLE, 1)  # otherwise /proc/self belongs to root


def _supervise(fds: list[int]) -> None:
    """Return in a child process. The parent supervises it and ends whatever it leaves behind.

    It replaces bubblewrap's first process, and reports signals in the same way.
    """
    _prctl(SUBREAPER, 1)
    _prctl(DUMPABLE, 0)  # a submission with the same user must not write to its memory
    child = os.fork()
    if child == 0:
        os.setsid()
        _prctl(DUMPABLE, 1)
        _prctl(PDEATHSIG, signal.SIGKILL)
        return
    signal.signal(signal.SIGTERM, lambda *_: _end(143))
    _prctl(PDEATHSIG, signal.SIGTERM)  # sent when the judge ends
    for fd in fds:  # so that the judge notices when the child closes its copies
        os.close(fd)
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            _end(code if code >= 0 else 128 - code)


def _end(code: int) -> None:
    """End all children, then exit. Orphans become children of this process, so nothing is left."""
    with contextlib.suppress(ChildProcessError):
        while True:
            with open(f"/proc/self/task/{os.getpid()}/children") as children:
                for pid in children.read().split():
                    os.kill(int(pid), signal.SIGKILL)
            os.wait()
    os._exit(code)


def _prctl(option: int, value: int) -> None:
    _check(libc.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)))


def _check(result: int) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
