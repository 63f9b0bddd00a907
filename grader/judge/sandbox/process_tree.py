"""A sandbox's process tree, seen from outside through /proc: the judge stops it, measures its memory, and ends it.

A process can hide behind a first thread that has ended, so every thread is inspected.
"""

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

_INODE_BYTES = 1024  # kernel memory per file of a tmpfs, even an empty one
_KIB = 1024
_WAIT_S = 0.0005
_PF_EXITING = 0x4  # linux/sched.h
# Lines of a `status` file. A process cannot forge one by its name, because the kernel escapes line feeds in names.
_SIZES = re.compile(rb"^(RssAnon|RssShmem|VmSwap|VmPTE):\s*(\d+) kB$", re.MULTILINE)
_MEMORY_FILE = re.compile(rb" (\d+) +/memfd:")  # the inode, in a line of `maps`
_SWITCHES = re.compile(rb"^(?:non)?voluntary_ctxt_switches:\t(\d+)", re.MULTILINE)


class TooManyFiles(Exception):
    """A tree has more open descriptors than the judge inspects."""


_COMPILERS = frozenset((b"ninja", b"c++", b"g++", b"cc1plus", b"as", b"collect2", b"ld", b"nvcc", b"cicc", b"ptxas",
                        b"cudafe++", b"fatbinary"))  # fmt: skip

_Switches = dict[str, list[bytes]]  # by thread


def descendants(root: int) -> list[int]:
    """The pids below `root`, level by level."""
    found: list[int] = []
    level = [root]
    while level:
        level = [child for pid in level for child in _children(pid)]
        found += level
    return found


def tasks(pids: Iterable[int]) -> int:
    """The number of threads of these processes, as RLIMIT_NPROC counts."""
    return sum(len(_threads(pid)) for pid in pids)


def compiles(pids: Iterable[int]) -> bool:
    """Whether one of these processes is called like a compiler or one of its parts."""
    return any(_name(pid) in _COMPILERS for pid in pids)


def processor_s(pids: Iterable[int]) -> float:
    """The processor time that these processes have used so far."""
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            ticks += sum(map(int, _read(f"/proc/{pid}/stat").rpartition(b") ")[2].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _name(pid: int) -> bytes:
    try:
        return _read(f"/proc/{pid}/comm").strip()
    except OSError:
        return b""


def stop_all(root: int, limit_s: float) -> bool:
    """Stop everything below `root`; return whether nothing runs there within `limit_s`.

    Two checks in a row must find the same processes, all stopped, and none that ran in between; SIGSTOP goes to all
    between the two. One check is not enough: when a process ends, the kernel may send SIGCONT to an orphaned process
    group, to a child that asked for it, or to a parent. That wakes stopped processes and cancels a pending SIGSTOP.
    """
    deadline = time.monotonic() + limit_s
    before: dict[int, _Switches | None] = {}
    while True:
        pids = descendants(root)
        now = {pid: _still(pid) for pid in pids}
        # List again: a process may have been created before its parent stopped.
        if None not in now.values() and now == before and descendants(root) == pids:
            return True
        if time.monotonic() > deadline:
            return False
        _signal(pids, signal.SIGSTOP)
        before = now
        time.sleep(_WAIT_S)


def continue_all(root: int) -> None:
    """Send SIGCONT to everything below `root`."""
    _signal(descendants(root), signal.SIGCONT)


def end_all(root: int, limit_s: float) -> None:
    """Send SIGKILL to everything below `root` until nothing is left or `limit_s` have passed."""
    deadline = time.monotonic() + limit_s
    while (pids := descendants(root)) and time.monotonic() < deadline:
        _signal(pids, signal.SIGKILL)
        time.sleep(_WAIT_S)


def memory_bytes(root: int, folders: Iterable[str], most_files: int) -> int:
    """The memory of everything below `root`: private and swapped pages, page tables, shared memory, tmpfs `folders`.

    Memory files (memfd) that the caller has open and these processes map are not counted, and neither is data in pipes
    and sockets. Pages that a parent and its child share after a fork count twice.

    Raises:
        TooManyFiles: the processes have more than `most_files` descriptors together.
    """
    private = mapped = seen = 0
    files: dict[int, int] = {}
    maps: set[int] = set()
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
                with contextlib.suppress(OSError):
                    maps |= set(map(int, _MEMORY_FILE.findall(_read(f"/proc/{pid}/task/{thread}/maps"))))
                break
    own = _memory_files("/proc/self/fd", _names("/proc/self/fd"))
    held = sum(size for inode, size in files.items() if inode not in own)
    held += sum(_used(f"/proc/{pids[0]}/root{folder}") for folder in folders) if pids else 0
    return private * _KIB + max(held, mapped * _KIB - sum(own[inode] for inode in maps & own.keys()))


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
    """The context switches of each thread; None if a thread is neither stopped, nor ended, nor waiting in the kernel.

    A thread may wait in the kernel for a driver, or for a stopped child to exec. With a SIGSTOP pending it finishes its
    system call and then stops, unless it is about to end.
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
    """The sizes in a `status` file, in KiB; empty for a thread that has ended."""
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
    """The size of each memfd among these descriptors of a /proc folder, by inode."""
    found = {}
    for name in names:
        with contextlib.suppress(OSError):
            status = os.stat(f"{folder}/{name}")
            if status.st_dev == _device_of_memory_files():
                found[status.st_ino] = status.st_blocks * 512
    return found


def _used(folder: str) -> int:
    try:
        disk = os.statvfs(folder)
    except OSError:
        return 0
    return (disk.f_blocks - disk.f_bfree) * disk.f_frsize + (disk.f_files - disk.f_ffree) * _INODE_BYTES


_FREEZE_LIMIT_S = 5.0
_END_LIMIT_S = 20.0  # a driver may take seconds to release a GPU


class Caged:
    """A sandbox's process tree. Its root `process` is trusted: bubblewrap, or a supervisor."""

    def __init__(
        self, process: subprocess.Popen[bytes], init: int | None = None, home: Path | None = None,
        group: Path | None = None, folders: Iterable[str] = (),
    ) -> None:  # fmt: skip
        """Take ownership of the arguments.

        Args:
            init: a pidfd of the first process of the pid namespace; when it ends, the kernel ends the others.
            home: a folder to remove at the end.
            group: the control group.
            folders: the writable tmpfs folders, as seen inside.
        """
        self.process = process
        self._init, self._home, self._group, self._folders = init, home, group, tuple(folders)
        self._lock = threading.Lock()
        self._ended = False

    def freeze(self) -> None:
        """Stop everything until `thaw`. A tree that cannot be stopped is ended."""
        if self.process.poll() is None and not stop_all(self.process.pid, _FREEZE_LIMIT_S):
            self.kill()

    def thaw(self) -> None:
        """Continue everything."""
        if self.process.poll() is None:
            continue_all(self.process.pid)

    def memory_bytes(self) -> int:
        """Memory and temporary files of the tree; takes a few milliseconds. Raises TooManyFiles."""
        return memory_bytes(self.process.pid, self._folders, FILES) if self.process.poll() is None else 0

    def processes(self) -> int:
        """Processes and threads of the tree, without the root."""
        return tasks(descendants(self.process.pid)) if self.process.poll() is None else 0

    def compiles(self) -> bool:
        """Whether a compiler runs in the tree. A submission can pretend that, to get the limit for building."""
        return self.process.poll() is None and compiles(descendants(self.process.pid))

    def processor_s(self) -> float:
        """The processor time of the tree so far, without processes that have ended."""
        return processor_s(descendants(self.process.pid)) if self.process.poll() is None else 0.0

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel killed a process for its memory; known only with a control group, and until `kill`."""
        return cgroup.ran_out_of_memory(self._group)

    def kill(self) -> None:
        """End everything, wait for it and remove the home; `process.stdout` stays open. A second call does nothing."""
        with self._lock:
            if self._ended:
                return
            self._ended = True
            if self._init is not None:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._init, signal.SIGKILL)
                ends = select.poll()
                ends.register(self._init, select.POLLIN)  # when it and everything below it has ended
                ends.poll(_END_LIMIT_S * 1000)
                os.close(self._init)
            elif self.process.poll() is None:
                stop_all(self.process.pid, _FREEZE_LIMIT_S)  # stopped processes create no children
                end_all(self.process.pid, _END_LIMIT_S)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=1)  # it reports how its child ended
            self.process.kill()
            self.process.wait()
            cgroup.remove(self._group)
            if self._home is not None:
                remove(self._home)


def remove(folder: Path) -> None:
    """Remove a folder, whatever a submission has put there."""
    with contextlib.suppress(RecursionError):  # folders nested a thousand levels deep
        shutil.rmtree(folder, ignore_errors=True)
    if os.path.lexists(folder):  # or folders that their owner may not enter
        for command in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
            subprocess.run([*command, "--", str(folder)], check=False, capture_output=True)
