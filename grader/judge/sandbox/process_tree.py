"""A process tree in a cage, and the three things that the judge does to it: hold it still, count it, end it."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import select
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from grader.judge.sandbox import cgroup
from grader.judge.sandbox.cgroup import FILES

# A tree of processes, seen from outside by /proc: who is in it, stopping and ending all of it, what memory it holds.
#
# A process may hide behind a first thread that has ended: every thread is looked at.

_INODE_BYTES = 1024  # of the kernel's, for each file of a tmpfs, empty or not
_KIB = 1024
_WAIT_S = 0.0005
_PF_EXITING = 0x4  # linux/sched.h
# Of a `status` file. The name that a process chose stands in a line of its own: the kernel escapes line feeds in it.
_SIZES = re.compile(rb"^(RssAnon|RssShmem|VmSwap|VmPTE):\s*(\d+) kB$", re.MULTILINE)
_SWITCHES = re.compile(rb"^(?:non)?voluntary_ctxt_switches:\t(\d+)", re.MULTILINE)


class TooManyFiles(Exception):
    """A tree has more descriptors than anybody looks at."""


_Switches = dict[str, list[bytes]]  # by thread


def descendants(root: int) -> list[int]:
    """The pids below `root`, parents first; children are listed before their own are asked for."""
    found: list[int] = []
    level = [root]
    while level:
        level = [child for pid in level for child in _children(pid)]
        found += level
    return found


def tasks(pids: Iterable[int]) -> int:
    """How many processes and threads there are, as RLIMIT_NPROC counts."""
    return sum(len(_threads(pid)) for pid in pids)


def stop_all(root: int, limit_s: float) -> bool:
    """SIGSTOP for everything below `root`; whether within `limit_s` nothing runs there any more.

    Two looks in a row must find the same processes, all of them still, and none that ran in between; all are told to
    stop between the two. The kernel itself sends SIGCONT when somebody ends: to an orphaned process group, to a child
    that asked for it, to a parent. That wakes those that had stopped, and takes back a SIGSTOP that is pending.
    """
    deadline = time.monotonic() + limit_s
    before: dict[int, _Switches | None] = {}
    while True:
        pids = descendants(root)
        now = {pid: _still(pid) for pid in pids}
        # The second list: one may have been born before its parent stopped.
        if None not in now.values() and now == before and descendants(root) == pids:
            return True
        if time.monotonic() > deadline:
            return False
        _signal(pids, signal.SIGSTOP)
        before = now
        time.sleep(_WAIT_S)


def continue_all(root: int) -> None:
    """SIGCONT for everything below `root`."""
    _signal(descendants(root), signal.SIGCONT)


def end_all(root: int, limit_s: float) -> None:
    """SIGKILL for everything below `root`, until nothing is there or `limit_s` have passed."""
    deadline = time.monotonic() + limit_s
    while (pids := descendants(root)) and time.monotonic() < deadline:
        _signal(pids, signal.SIGKILL)
        time.sleep(_WAIT_S)


def memory_bytes(root: int, folders: Iterable[str], most_files: int) -> int:
    """What everything below `root` holds: pages of its own, swapped ones, page tables, shared memory, tmpfs `folders`.

    Files of memory (memfd) that the caller has open too are the caller's, and not counted. Nor is what lies in pipes
    and sockets. Pages that a parent and its child still share after a fork count for both.

    Raises:
        TooManyFiles: all processes together have more than `most_files` descriptors, each of which takes time.
    """
    private = mapped = seen = 0
    files: dict[int, int] = {}
    pids = descendants(root)
    for pid in pids:
        for thread in _threads(pid):
            sizes = _sizes(f"/proc/{pid}/task/{thread}/status")
            if sizes:
                private += sizes.get("RssAnon", 0) + sizes.get("VmSwap", 0) + sizes.get("VmPTE", 0)
                mapped += sizes.get("RssShmem", 0)
                folder = f"/proc/{pid}/task/{thread}/fd"
                names = _names(folder)
                if (seen := seen + len(names)) > most_files:
                    raise TooManyFiles
                files |= _memory_files(folder, names)
                break
    ours = _memory_files("/proc/self/fd", _names("/proc/self/fd"))
    held = sum(size for inode, size in files.items() if inode not in ours)
    held += sum(_used(f"/proc/{pids[0]}/root{folder}") for folder in folders) if pids else 0
    return private * _KIB + max(held, mapped * _KIB - sum(ours.values()))


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for thread in _threads(pid):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/children") as children:
            found += map(int, children.read().split())
    return found


def _threads(pid: int) -> list[str]:
    return _names(f"/proc/{pid}/task")


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _still(pid: int) -> _Switches | None:
    """How often each of its threads has left a processor; None where one is neither stopped nor ended, nor waits in
    the kernel.

    One that waits there (for a driver, or for a stopped child to exec), and has been told to stop, stops before it
    does anything else, unless it is about to end. It may do what it had asked the kernel for.
    """
    found = {}
    for thread in _threads(pid):
        with contextlib.suppress(OSError):
            status = _read(f"/proc/{pid}/task/{thread}/status")
            state = status.partition(b"\nState:\t")[2][:1]
            if state not in (b"T", b"t", b"Z", b"X", b"D") or (state == b"D" and _ends(pid, thread)):
                return None
            found[thread] = _SWITCHES.findall(status)
    return found


def _ends(pid: int, thread: str) -> bool:
    return bool(int(_read(f"/proc/{pid}/task/{thread}/stat").rpartition(b") ")[2].split()[6]) & _PF_EXITING)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _signal(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _sizes(path: str) -> dict[str, int]:
    """The kilobytes in a `status` file; none of a thread that has ended."""
    try:
        return {name.decode(): int(kib) for name, kib in _SIZES.findall(_read(path))}
    except OSError:
        return {}


@functools.cache
def _device_of_memory_files() -> int:
    fd = os.memfd_create("which device", os.MFD_CLOEXEC)
    try:
        return os.fstat(fd).st_dev
    finally:
        os.close(fd)


def _memory_files(folder: str, names: Iterable[str]) -> dict[int, int]:
    """Inode and bytes of each memfd among these descriptors in a `fd` folder of /proc."""
    found = {}
    for name in names:
        with contextlib.suppress(OSError):
            about = os.stat(f"{folder}/{name}")
            if about.st_dev == _device_of_memory_files():
                found[about.st_ino] = about.st_blocks * 512
    return found


def _used(folder: str) -> int:
    try:
        about = os.statvfs(folder)
    except OSError:
        return 0
    return (about.f_blocks - about.f_bfree) * about.f_frsize + (about.f_files - about.f_ffree) * _INODE_BYTES


# A process tree in a cage, and the three things that the judge does to it: hold it still, count it, end it.

_FREEZE_LIMIT_S = 5.0
_END_LIMIT_S = 20.0  # a driver may take seconds to let go of a GPU


class Caged:
    """A process tree in a cage. `process` is our own part of it: bubblewrap, or a supervisor; all else lies below."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        init: int | None = None,
        home: Path | None = None,
        group: Path | None = None,
        folders: Iterable[str] = (),
    ) -> None:
        """Owns what it is given.

        Args:
            init: a pidfd of the first process of its pid namespace, with which the kernel ends all of it.
            home: a folder to remove at the end.
            group: its control group.
            folders: the tmpfs that it can write to, in its own namespace.
        """
        self.process = process
        self._init, self._home, self._group, self._folders = init, home, group, tuple(folders)
        self._lock = threading.Lock()
        self._ended = False

    def freeze(self) -> None:
        """Stops everything, until `thaw`. A tree that cannot be held still is ended."""
        if self.process.poll() is None and not stop_all(self.process.pid, _FREEZE_LIMIT_S):
            self.kill()

    def thaw(self) -> None:
        """Lets everything go on."""
        if self.process.poll() is None:
            continue_all(self.process.pid)

    def memory_bytes(self) -> int:
        """Memory and temporary files of the whole tree; takes a few milliseconds.

        Raises:
            TooManyFiles: it has more descriptors than `FILES`.
        """
        return memory_bytes(self.process.pid, self._folders, FILES) if self.process.poll() is None else 0

    def processes(self) -> int:
        """Processes and threads of the whole tree, our own part not counted."""
        return tasks(descendants(self.process.pid)) if self.process.poll() is None else 0

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel ended it for that; known only where it has a control group, and until `kill`."""
        return cgroup.ran_out_of_memory(self._group)

    def kill(self) -> None:
        """Ends everything, waits for it, removes its home. A second call does nothing. `process.stdout` stays open."""
        with self._lock:
            if self._ended:
                return
            self._ended = True
            if self._init is not None:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._init, signal.SIGKILL)
                ends = select.poll()
                ends.register(self._init, select.POLLIN)  # once it and all below it have ended
                ends.poll(_END_LIMIT_S * 1000)
                os.close(self._init)
            elif self.process.poll() is None:
                stop_all(self.process.pid, _FREEZE_LIMIT_S)  # what is stopped has no more children
                end_all(self.process.pid, _END_LIMIT_S)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=1)  # it tells how its child ended
            self.process.kill()
            self.process.wait()
            cgroup.remove(self._group)
            if self._home is not None:
                remove(self._home)


def remove(folder: Path) -> None:
    """Removes a folder, whatever a submission has made of it."""
    with contextlib.suppress(RecursionError):  # folders in folders, a thousand deep
        shutil.rmtree(folder, ignore_errors=True)
    if os.path.lexists(folder):  # or some that their owner may not enter
        for command in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
            subprocess.run([*command, "--", str(folder)], check=False, capture_output=True)
