"""Workers, judges' services and notebook kernels that are forked from a process that has already imported everything.

Importing torch takes seconds of processor time, more than most gradings. A check in a notebook does it three times: in
the kernel, in the judge's service and in a worker. Forked workers have no sandbox: use them for learners' work, and
never for exploits that reach out of their process. Everything else is as in the product.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from grader.bottleneck.evidence import Evidence
from grader.exercise import Exercise
from grader.exercises import find
from grader.judge import service
from grader.judge.process import worker as workers
from grader.judge.sandbox.launch import environment
from grader.judge.sandbox.process_tree import Caged
from grader.judge.sandbox.sight import import_folders
from grader.verdict import Progress, Verdict

__all__ = ["ForkServer", "Forked", "ForkingJudge", "fork_servers", "forking_judge", "use"]

_FORK_SERVER = (
    f"import sys; sys.path[:0] = {import_folders()!r}\nfrom tests.forked import serve; serve(*eval(sys.argv[1]))"
)
_WORKER_IMPORTS = ("numba.cuda", "torch.utils.cpp_extension", "grader.worker.harnesses.compiled_graph")
_TRUSTED_IMPORTS = (
    "torch",
    "ipykernel.kernelapp",
    "matplotlib_inline.backend_inline",
    "grader.notebook",
    "grader.judge.arbiter",
)
_LIMIT_S = 600.0


class ForkServer:
    """A process that forks workers, or, if it is `trusted`, services and kernels. `path`: the socket for requests."""

    def __init__(self, home: Path, trusted: bool = False) -> None:
        self.path = str(home / "socket")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            listening.bind(self.path)
            listening.listen(16)
            (home / "tmp").mkdir()
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", _FORK_SERVER, repr((listening.fileno(), trusted))],
                pass_fds=(listening.fileno(),),
                env=environment(str(home), None),
                stdin=subprocess.DEVNULL,
                cwd=home,
                start_new_session=True,
            )

    def run(self, code: str, folder: Path, **variables: str) -> tuple[int, str]:
        """Run code in a process like a worker's, in `folder`, which it can import from: its exit status and output."""
        first = f"import sys\nsys.path.insert(0, {str(folder)!r})\n"
        (folder / "tmp").mkdir(exist_ok=True)
        process = Forked(
            self.path, first + code, (), environment(str(folder), None) | variables, str(folder), pipe=True
        )
        assert process.stdout is not None
        with process.stdout as printed:
            output = printed.read()
        return process.wait(), output.decode()

    def close(self) -> None:
        """End it; its descendants end as soon as their channels are closed."""
        self._process.kill()
        self._process.wait()


@contextlib.contextmanager
def fork_servers() -> Iterator[tuple[str, str]]:
    """Two fork servers outside of pytest: the sockets of the one for workers and of the trusted one, as for `use`."""
    with contextlib.ExitStack() as stack:
        paths = []
        for trusted in (False, True):
            home = stack.enter_context(tempfile.TemporaryDirectory(prefix="forks-"))
            server = ForkServer(Path(home), trusted=trusted)
            stack.callback(server.close)
            paths.append(server.path)
        yield paths[0], paths[1]


class ForkingJudge:
    """Gives the verdicts of a `Judge("simulator")`, from an arbiter in this process with forked workers."""

    def __init__(self, fork_server: ForkServer) -> None:
        from grader.judge.arbiter import Arbiter

        self._arbiter = Arbiter("simulator", sandbox=cast("bool", _NoCage(fork_server.path)))

    def grade(self, source: str, exercise_id: str, *, timed: bool = True, progress: Progress | None = None) -> Verdict:
        """As `Judge.grade`."""
        exercise: Exercise = find(exercise_id)
        return self._arbiter.grade(source, exercise, timed=timed, **({"progress": progress} if progress else {}))

    def evidence(self, source: str, exercise_id: str, *, beside_gpu: bool = False) -> Evidence:
        """As `Judge.evidence`."""
        exercise: Exercise = find(exercise_id)
        claims = self._arbiter.evidence(source, exercise, beside_gpu=beside_gpu)
        return Evidence.of_claims(exercise, json.loads(json.dumps(claims)))

    def close(self) -> None:
        self._arbiter.close()


class _NoCage:
    """Takes the place of a judge's flag for the sandbox: its workers are forked. It counts as False."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __bool__(self) -> bool:
        return False


@contextlib.contextmanager
def forking_judge(fork_server: ForkServer) -> Iterator[ForkingJudge]:
    """While it is open, its workers are forked, but no other workers of this process."""
    start = workers.start

    def start_or_fork(code: str, fds: tuple[int, ...], device: str, sandbox: bool | None = None) -> Caged:
        if not isinstance(sandbox, _NoCage):
            return start(code, fds, device, sandbox)
        return _worker(sandbox.path, code, fds)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "start", start_or_fork)
        judge = ForkingJudge(fork_server)
        yield judge
        judge.close()


def use(path: str, trusted: str, patch: pytest.MonkeyPatch | None = None) -> None:
    """In this process, fork workers, judges' services and kernels, by the sockets of the two fork servers."""
    patch = patch or pytest.MonkeyPatch()
    patch.setattr(workers, "start", lambda code, fds, device, sandbox=None: _worker(path, code, fds))
    first = f"from tests.forked import use\nuse({path!r}, {trusted!r})\n"

    def start_service(command: Sequence[str], *, pass_fds: tuple[int, ...], env: dict[str, str], **_: Any) -> Forked:
        return Forked(trusted, first + command[-1], pass_fds, env, env["TMPDIR"])

    def start_kernel(command: list[str], *, env: dict[str, str], cwd: str | None = None, **_: Any) -> Forked:
        run = f"import sys\nsys.argv = {command[2:]!r}\nsys.path.insert(0, '')\n"
        run += "from grader.notebook.notebook_machine import simulate\nsimulate()\n"  # as `import grader` in a cell
        run += "from ipykernel.kernelapp import launch_new_instance\nlaunch_new_instance()"
        return Forked(trusted, first + run, (), env, cwd or os.getcwd())

    patch.setattr(service, "subprocess", SimpleNamespace(**vars(subprocess) | {"Popen": start_service}))
    patch.setattr("jupyter_client.provisioning.local_provisioner.launch_kernel", start_kernel)


def _worker(path: str, code: str, fds: tuple[int, ...]) -> Caged:
    home = Path(tempfile.mkdtemp(prefix="grader-worker-"))
    variables = environment(str(home), None)
    os.makedirs(variables["TMPDIR"])
    process = Forked(path, code, fds, variables, str(home), pipe=True)
    return Caged(cast("subprocess.Popen[bytes]", process), home=home)


class Forked:
    """The part of Popen that a judge uses, for a process that is not our child: a pipe delivers its exit status."""

    def __init__(
        self, path: str, code: str, fds: Sequence[int], env: dict[str, str], folder: str, pipe: bool = False
    ) -> None:
        """Run `code` in a fork. Without a pipe, it shares our stdout and stderr. The supervisor's pid is `pid`."""
        self.returncode: int | None = None
        self.stdin = self.stderr = None
        self.stdout: io.FileIO | None = None
        self._ended, ends = os.pipe()
        printed = (1, 2)
        if pipe:
            output, write_end = os.pipe()
            self.stdout, printed = io.FileIO(output, "rb"), (write_end, write_end)
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as request:
                request.settimeout(_LIMIT_S)
                request.connect(path)
                said = {"code": code, "fds": [*fds], "env": env, "folder": folder, "apart": pipe}
                said["cores"] = sorted(os.sched_getaffinity(0))  # as a child of this process would
                socket.send_fds(request, [json.dumps(said).encode()], [*fds, *printed, ends])
                self.pid = int(request.recv(16))
            self._pidfd = os.pidfd_open(self.pid)
        finally:
            os.close(ends)
            if pipe:
                os.close(write_end)

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            waiting = select.poll()
            waiting.register(self._ended, select.POLLIN)
            if not waiting.poll(None if timeout is None else timeout * 1000):
                raise subprocess.TimeoutExpired("a forked process", timeout or 0)
            said = os.read(self._ended, 16)
            self.returncode = int(said) if said else -signal.SIGKILL
            os.close(self._ended)
            os.close(self._pidfd)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def serve(fd: int, trusted: bool) -> None:
    """The fork server: import everything, then fork a supervisor for each request."""
    from grader.worker import main

    before = dict(os.environ)
    if not trusted:
        main._import("simulator")
        main._import = lambda device: None
    for name in _TRUSTED_IMPORTS if trusted else _WORKER_IMPORTS:
        importlib.import_module(name)
    set_by_imports = {name: value for name, value in os.environ.items() if before.get(name) != value}
    listening = socket.socket(fileno=fd)
    while True:
        request, _ = listening.accept()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        with request:
            text, given, _, _ = socket.recv_fds(request, 1 << 20, 16)
            pid = os.fork()
            if pid == 0:
                listening.close()
                request.close()
                _supervise(json.loads(text), given, set_by_imports)
            os.setpgid(pid, pid)  # Jupyter signals a kernel's group
            request.send(str(pid).encode())
        for each in given:
            os.close(each)


def _supervise(asked: dict[str, Any], given: list[int], set_by_imports: dict[str, str]) -> None:
    """Like `trampoline._supervise`: runs the code in a child, and reports its exit status."""
    *fds, stdout, stderr, ends = given
    os.sched_setaffinity(0, asked["cores"])
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if asked["apart"]:
                os.setsid()
            _take(fds, asked["fds"], (stdout, stderr), ends)
            os.environ.clear()
            os.environ.update(asked["env"] | set_by_imports)  # among them PATH, with the simulator's nvcc
            os.chdir(asked["folder"])
            tempfile.tempdir = None
            exec(asked["code"], {"__name__": "__main__"})
            status = 0
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        except BaseException:
            traceback.print_exc()
        finally:
            with contextlib.suppress(Exception):
                sys.stdout.flush()
            os._exit(status)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for each in given[:-1]:
        os.close(each)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    with contextlib.suppress(BrokenPipeError):  # nobody waits any more
        os.write(ends, str(code if code >= 0 else 128 - code).encode())
    os._exit(0)


def _take(fds: list[int], numbers: list[int], printed: tuple[int, int], ends: int) -> None:
    """Give the received descriptors the numbers that the code expects."""
    os.close(ends)
    above = max([*numbers, *fds, *printed]) + 1
    moved = [os.dup2(fd, above + at) for at, fd in enumerate((*printed, *fds))]
    for fd in (*printed, *fds):
        os.close(fd)
    for fd, number in zip(moved, (1, 2, *numbers), strict=True):
        os.dup2(fd, number)
        os.close(fd)
