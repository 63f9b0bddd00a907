"""Workers as the arbiter sees them: started ahead of need, used for one submission, ended with their process group."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from grader.judge.desk import Desk, Spread
from grader.judge.sandbox import cage, environment, import_folders
from grader.protocol.channel import Channel, ChannelClosed, ChannelTimeout
from grader.protocol.flag import Flag
from grader.verdict import Failure

__all__ = ["START_LIMIT_S", "Worker", "WorkerFailed"]

START_LIMIT_S = 120.0
_LOG_BYTES = 16 << 10
_PLAN_LIMIT_S = 20.0  # to map memory and lay tensors over it: milliseconds, on a machine that is not overwhelmed
_SPIN_S = {"cuda": 0.2, "simulator": 0.002}  # a longer wait measures no microseconds: sleep between looks
_KINDS = ("not_written", "compile", "exception", "illegal_access")


class WorkerFailed(Exception):
    """A submission failed in its worker; `failure` says how. After a crash or a timeout the worker is gone."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Worker:
    """One worker process."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._home = Path(tempfile.mkdtemp(prefix="grader-worker-"))
        ours, theirs = socket.socketpair()
        command = [
            sys.executable, "-I", "-c",
            f"import sys; sys.path[:0] = {import_folders()!r}\n"
            f"from grader.worker.main import main; main({theirs.fileno()}, {device!r})",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            cage(command, self._home),
            pass_fds=(theirs.fileno(),),
            env=environment(self._home),
            cwd=self._home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        theirs.close()
        self._channel = Channel(ours)
        self._log = bytearray()
        self._reader = threading.Thread(target=self._drain, daemon=True)
        self._reader.start()
        self._ready = False
        self._round = 0
        self._flag: Flag | None = None
        self._places: Any = None
        self._closed = False

    @property
    def log(self) -> str:
        """What the process printed, up to a cap."""
        return self._log.decode("utf-8", "replace")

    def await_ready(self, limit_s: float = START_LIMIT_S) -> None:
        """Waits for the imports.

        Raises:
            WorkerFailed: it did not come up; the log says why.
        """
        if not self._ready:
            self._receive(limit_s)
            self._ready = True

    def load(self, name: str, source: str, entry: str, limit_s: float) -> None:
        """Imports the source of a submission, or of a baseline, as `name`."""
        self._ask({"op": "load", "name": name, "source": source, "entry": entry}, limit_s)

    def map(self, desk: Desk) -> None:
        """Hands over the arenas and a new flag."""
        self._flag, flag_fd = Flag.create()
        arenas = [
            {"name": name, "kind": arena.kind, "size": arena.size, "read_only": name == "inputs"}
            for name, arena in desk.arenas.items()
        ]
        fds = (flag_fd, *(arena.fd for arena in desk.arenas.values()))
        self._ask({"op": "map", "arenas": arenas}, _PLAN_LIMIT_S, fds)
        os.close(flag_fd)

    def plan(self, spread: Spread) -> None:
        """Tells the worker where the tensors of the coming rounds lie."""
        self._places = spread.places()
        self._ask({"op": "plan", "launches": spread.plan()}, _PLAN_LIMIT_S)

    def round(self, name: str, desk: Desk, limit_s: float) -> float:
        """One round of `name` ("": one that fills the output with zeros) over the planned launches.

        Returns seconds by the arbiter's clock, its look at the outputs included.

        Raises:
            WorkerFailed: the submission raised, crashed, did not end in time, or its answer came before its outputs.
        """
        assert self._flag is not None
        assert self._places is not None
        self._round += 1
        self._channel_send({"op": "arm", "name": name, "round": self._round})
        self._receive(limit_s)
        flag, number, places = self._flag, self._round, self._places.to(desk.torch_device)
        desk.settle()
        start = time.perf_counter()
        flag.raise_(number)
        while not flag.answered(number):
            waited = time.perf_counter() - start
            if waited > _SPIN_S[self.device]:
                time.sleep(0.001)
                if self._process.poll() is not None:
                    raise WorkerFailed(self._died())
            if waited > limit_s:
                raise WorkerFailed(self._too_slow(limit_s))
        seen = desk.glimpse(places)
        seconds = time.perf_counter() - start
        self._receive(limit_s)
        if not seen.equal(desk.glimpse(places)):
            raise WorkerFailed(Failure("wrong_answer", "Outputs changed after the function had returned: it must wait "
                                       "for its own threads, streams and processes."))  # fmt: skip
        return seconds

    def close(self) -> None:
        """Ends the whole process group and removes its home. A second call does nothing: the pid may be another's."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        self._reader.join(timeout=5)
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._channel.close()
        if self._flag is not None:
            self._flag.close()
            self._flag = None
        _remove(self._home)

    def _ask(self, message: dict[str, Any], limit_s: float, fds: tuple[int, ...] = ()) -> None:
        self._channel_send(message, fds)
        self._receive(limit_s)

    def _channel_send(self, message: dict[str, Any], fds: tuple[int, ...] = ()) -> None:
        try:
            self._channel.send(message, fds)
        except ChannelClosed:
            raise WorkerFailed(self._died()) from None

    def _receive(self, limit_s: float) -> None:
        try:
            answer, fds = self._channel.receive(limit_s)
        except ChannelTimeout:
            raise WorkerFailed(self._too_slow(limit_s)) from None
        except ChannelClosed:
            raise WorkerFailed(self._died()) from None
        for fd in fds:
            os.close(fd)
        if "failure" in answer:
            raise WorkerFailed(_failure(answer["failure"]))

    def _too_slow(self, limit_s: float) -> Failure:
        self.close()
        return Failure("timeout", f"It did not end within {limit_s:.0f} s and was stopped.")

    def _died(self) -> Failure:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5)
        code = self._process.returncode
        if code is not None and 128 < code <= 128 + signal.SIGRTMAX:  # bubblewrap reports a signal as the shell does
            code = 128 - code
        if code is not None and code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
            message = f"The process that ran it was ended by {name}."
            if name in ("SIGSEGV", "SIGBUS"):
                message = (
                    "The process that ran it crashed: it accessed memory that is not its own, or wrote to an input."
                )
        else:
            message = "The process that ran it ended itself before it answered."
        return Failure("crash", message, detail=self.log[-2000:])

    def _drain(self) -> None:
        pipe = self._process.stdout
        assert pipe is not None
        with contextlib.suppress(OSError, ValueError):
            while chunk := os.read(pipe.fileno(), 1 << 16):
                if len(self._log) < _LOG_BYTES:
                    self._log += chunk[: _LOG_BYTES - len(self._log)]


def _remove(folder: Path) -> None:
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except RecursionError:  # folders in folders, a thousand deep
        subprocess.run(["rm", "-rf", "--", str(folder)], check=False, capture_output=True)


def _text(value: Any, limit: int) -> str:
    return str(value)[:limit].encode("utf-8", "replace").decode()


def _failure(data: Any) -> Failure:
    """An untrusted description, held to the shape and lengths of a Failure."""
    if not isinstance(data, dict):
        return Failure("exception", "The worker sent a failure that cannot be read.")
    kind = data.get("kind")
    line = data.get("line")
    return Failure(
        kind=kind if kind in _KINDS else "exception",
        message=_text(data.get("message", ""), 500),
        line=line if type(line) is int and 0 < line < 1_000_000 else None,
        detail=_text(data.get("detail", ""), 4000),
    )
