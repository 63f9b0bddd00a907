"""A judge for the simulator whose workers are forked from one process that has already imported everything.

Importing torch and triton takes a worker seconds of processor time, as much as most gradings. The workers have no
sandbox: use this judge for learners' mistakes, never for exploits. Everything else is as in the product.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

import pytest

from grader.exercises import find
from grader.judge.process import worker as workers
from grader.judge.sandbox.launch import environment
from grader.judge.sandbox.process_tree import Caged
from grader.judge.sandbox.sight import import_folders
from grader.verdict import Verdict

__all__ = ["ForkingJudge", "forking_judge"]

_NURSERY = (
    f"import sys; sys.path[:0] = {import_folders()!r}\nfrom tests.forked import nursery; nursery(int(sys.argv[1]))"
)
_IMPORTS_LIMIT_S = 600.0


class _NoCage:
    """Requests a forked worker; other judges of this process pass a flag for the sandbox here."""

    def __bool__(self) -> bool:
        return False


class ForkingJudge:
    """`grade` gives the same verdict as a `Judge("simulator")`."""

    def __init__(self) -> None:
        from grader.judge.arbiter import Arbiter

        self._arbiter = Arbiter("simulator", sandbox=cast("bool", _NoCage()))

    def grade(self, source: str, exercise_id: str) -> Verdict:
        return self._arbiter.grade(source, find(exercise_id))

    def close(self) -> None:
        self._arbiter.close()


@contextlib.contextmanager
def forking_judge() -> Iterator[ForkingJudge]:
    """While it is open, its workers are forked, but no other workers of this process."""
    start, one_at_a_time = workers.start, threading.Lock()

    def start_or_fork(code: str, fds: tuple[int, ...], device: str, sandbox: bool | None = None) -> Caged:
        if not isinstance(sandbox, _NoCage):
            return start(code, fds, device, sandbox)
        with one_at_a_time:
            return _forked(ours, home, fds)

    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with tempfile.TemporaryDirectory(prefix="nursery-") as home, pytest.MonkeyPatch.context() as patch:
        process = subprocess.Popen(
            [sys.executable, "-I", "-c", _NURSERY, str(theirs.fileno())],
            pass_fds=(theirs.fileno(),),
            env=environment(home, None),
            stdin=subprocess.DEVNULL,
            cwd=home,
        )
        theirs.close()
        os.makedirs(f"{home}/tmp")
        try:
            ours.settimeout(_IMPORTS_LIMIT_S)
            assert ours.recv(64) == b"ready"
            patch.setattr(workers, "start", start_or_fork)
            judge = ForkingJudge()
            yield judge
            judge.close()
        finally:
            ours.close()
            process.wait(timeout=60)


class _Forked:
    """The part of Popen that `Caged` uses, for a process that is not our child: a pipe delivers its exit status."""

    def __init__(self, pid: int, ended: int, stdout: IO[bytes]) -> None:
        self.pid, self._ended, self.stdout = pid, ended, stdout
        self._pidfd = os.pidfd_open(pid)
        self.returncode: int | None = None

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            waiting = select.poll()
            waiting.register(self._ended, select.POLLIN)
            if not waiting.poll(None if timeout is None else timeout * 1000):
                raise subprocess.TimeoutExpired("a forked worker", timeout or 0)
            said = os.read(self._ended, 16)
            self.returncode = int(said) if said else -signal.SIGKILL
            os.close(self._ended)
            os.close(self._pidfd)
        return self.returncode

    def kill(self) -> None:
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)


def _forked(requests: socket.socket, above: str, fds: tuple[int, ...]) -> Caged:
    home = Path(tempfile.mkdtemp(prefix="worker-", dir=above))
    output, printed = os.pipe()
    ended, ends = os.pipe()
    try:
        socket.send_fds(requests, [os.fsencode(home)], [*fds, printed, ends])
        pid = int(requests.recv(16))
    finally:
        os.close(printed)
        os.close(ends)
    process = _Forked(pid, ended, os.fdopen(output, "rb", buffering=0))
    return Caged(cast("subprocess.Popen[bytes]", process), home=home)


def nursery(fd: int) -> None:
    """Imports what a worker imports, then forks a supervisor with a worker for each home folder that it receives."""
    from grader.worker import main

    main._import("simulator")
    _import_more()
    main._import = lambda device: None
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    requests = socket.socket(fileno=fd)
    requests.send(b"ready")
    while True:
        home, given, _, _ = socket.recv_fds(requests, 4096, 3)
        if not home:
            return
        pid = os.fork()
        if pid == 0:
            requests.close()
            _supervise(main, os.fsdecode(home), *given)
        requests.send(str(pid).encode())
        for each in given:
            os.close(each)


def _import_more() -> None:
    """Imports modules that many submissions import."""
    for name in ("numba.cuda", "torch.utils.cpp_extension"):
        importlib.import_module(name)


def _supervise(main: Any, home: str, channel: int, printed: int, ends: int) -> None:
    """Like `trampoline._supervise`: runs the worker as a child, and reports its exit status."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    worker = os.fork()
    if worker == 0:
        os.close(ends)
        os.setsid()
        for stream in (1, 2):
            os.dup2(printed, stream)
        os.close(printed)
        os.environ.update(environment(home, None) | {"PATH": os.environ["PATH"]})
        os.chdir(home)
        os.makedirs(os.environ["TMPDIR"])
        tempfile.tempdir = None
        try:
            main.main(channel, "simulator")
        finally:
            sys.stdout.flush()
            os._exit(0)
    os.close(channel)
    os.close(printed)
    _, status = os.waitpid(worker, 0)
    code = os.waitstatus_to_exitcode(status)
    os.write(ends, str(code if code >= 0 else 128 - code).encode())
    os._exit(0)
