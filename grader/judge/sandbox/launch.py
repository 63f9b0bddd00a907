"""Starts a process in the strongest cage that this system allows, which is found out by trying, once a process."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import secrets
import select
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from grader.judge.sandbox import bubblewrap, cgroup, landlock, limits, seccomp, sight
from grader.judge.sandbox.caged import Caged
from grader.judge.sandbox.environment import environment
from grader.judge.sandbox.forms import Form, forms
from grader.judge.sandbox.gpu import GpuAccess, gpu_access

__all__ = ["decided", "start", "start_as", "strength", "works"]

_TRAMPOLINE = Path(__file__).with_name("trampoline.py")
_TRIAL_LIMIT_S = 60.0
_BEGIN_LIMIT_S = 20.0  # bubblewrap's first process is there after milliseconds
_FIRST_UID, _UIDS = 61184, 4096  # the range that systemd, too, takes users from for services that end
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


def start(code: str, fds: tuple[int, ...], device: str, enabled: bool = True) -> Caged:
    """Runs Python code in a cage; stdout and stderr come through one pipe.

    Args:
        code: it can import grader.worker and grader.protocol, and what is installed.
        fds: descriptors that it inherits, under the same numbers.
        device: "cuda" or "simulator"; the second sees no GPU.
        enabled: False for a plain process.
    """
    return start_as(decided(enabled), code, fds, device)


def strength(enabled: bool = True) -> str:
    """ "bubblewrap"; or a weaker kind with what it lacks, as in "landlock: bubblewrap is not installed; …"."""
    return str(decided(enabled))


@functools.cache
def decided(enabled: bool) -> Form:
    """The form that `start` uses: the first that works."""
    if not enabled:
        return Form("none", lacking=("--no-sandbox was given",))
    found = forms()
    return next((form for form in found if works(form)), found[-1])


def works(form: Form) -> bool:
    """Whether a process starts in it and finds what a worker imports."""
    try:
        caged = start_as(form, "import grader.protocol.channel, grader.worker", (), "simulator")
    except OSError:
        return False
    try:
        return caged.process.wait(timeout=_TRIAL_LIMIT_S) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        caged.kill()
        if caged.process.stdout is not None:
            caged.process.stdout.close()


def start_as(form: Form, code: str, fds: tuple[int, ...], device: str) -> Caged:
    """`start` in this form of cage."""
    cage: dict[str, Any] = {
        "code": code,
        "fds": fds,
        "path": [str(path) for path in sight.added_folders()],
        "uid": _free_uid() if form.own_user else None,
        "rlimits": limits.rlimits(limits.TASKS + (0 if form.own_user else _tasks_of_user())),
        "locked": form.kind != "none",
        "supervised": form.kind != "bubblewrap",
        "seccomp": "",
        "landlock": None,
    }
    group = cgroup.make() if cage["locked"] else None
    try:
        if form.kind == "bubblewrap":
            return _in_bubblewrap(cage, gpu_access(device), group)
        return _supervised(cage, gpu_access(device), group, form.kind == "landlock")
    except BaseException:
        cgroup.remove(group)
        raise


def _in_bubblewrap(cage: dict[str, Any], gpu: GpuAccess | None, group: Path | None) -> Caged:
    cage["path"].insert(0, bubblewrap.GRADER)
    told, tell = os.pipe()
    own = cage["uid"] is not None
    command, ours = bubblewrap.command(
        bubblewrap.find() or "bwrap",
        _python(cage),
        gpu,
        uid=cage["uid"] if own else _FIRST_UID,
        own_user=own,
        seccomp=seccomp.program(namespaced=True),
        told=tell,
    )
    try:
        process = _spawn(
            cgroup.entering(group, command), (*cage["fds"], *ours, tell), environment(bubblewrap.HOME, gpu)
        )
        os.close(tell)
        tell = -1
        return Caged(process, _first_process(told), None, group, bubblewrap.WRITABLE)
    finally:
        for fd in (told, tell, *ours):
            with contextlib.suppress(OSError):
                os.close(fd)


def _first_process(told: int) -> int | None:
    """A pidfd of bubblewrap's first process inside; None where it could not begin."""
    said = b""
    ready = select.poll()
    ready.register(told, select.POLLIN)
    while b"}" not in said:
        if not ready.poll(_BEGIN_LIMIT_S * 1000) or not (more := os.read(told, 4096)):
            return None
        said += more
    with contextlib.suppress(ProcessLookupError):
        return os.pidfd_open(json.loads(said)["child-pid"])
    return None


def _supervised(cage: dict[str, Any], gpu: GpuAccess | None, group: Path | None, landlocked: bool) -> Caged:
    home = Path(tempfile.mkdtemp(prefix="grader-worker-"))
    try:
        cage["path"].insert(0, _links(home))
        if cage["uid"] is not None:
            _give(home, cage["uid"])
        if cage["locked"]:
            cage["seccomp"] = seccomp.program(namespaced=False).hex()
        if landlocked:
            read = [*sight.shown(gpu), *(sight.PACKAGE / name for name in sight.MODULES), Path("/proc")]
            nodes = (*_DEVICES, *(gpu.nodes if gpu is not None else ()))
            cage["landlock"] = landlock.ruleset(read, sight.hidden(), nodes, home)
        command = cgroup.entering(group, _python(cage))
        return Caged(_spawn(command, cage["fds"], environment(str(home), gpu)), home=home, group=group)
    except BaseException:
        shutil.rmtree(home, ignore_errors=True)
        raise


def _python(cage: dict[str, Any]) -> list[str]:
    return [sys.executable, "-I", "-c", f"{_TRAMPOLINE.read_text(encoding='utf-8')}\nenter({cage!r})"]


def _links(home: Path) -> str:
    """A folder from which `import grader.worker` finds what a worker imports, and nothing else of this package."""
    package = home / ".import" / "grader"
    package.mkdir(parents=True)
    for name in sight.MODULES:
        (package / name).symlink_to(sight.PACKAGE / name)
    return str(package.parent)


def _give(home: Path, uid: int) -> None:
    """Makes it the home of another user. If the folder that it lies in is ours alone, others may pass through it."""
    above = home.parent.stat()
    if above.st_uid == os.geteuid():
        home.parent.chmod(above.st_mode & 0o7777 | 0o011)
    os.chown(home, uid, uid)


def _free_uid() -> int:
    """A user id that no process has now: limits are counted, and signals allowed, by user."""
    taken = {uid for uid, _ in _running()}
    while (uid := _FIRST_UID + secrets.randbelow(_UIDS)) in taken:
        pass
    return uid


def _tasks_of_user() -> int:
    """Processes and threads of the grading user, which count towards the limit of one that is the same."""
    return sum(threads for uid, threads in _running() if uid == os.geteuid())


def _running() -> list[tuple[int, int]]:
    """User and number of threads of every process."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                about = os.stat(f"/proc/{name}/task")
                found.append((about.st_uid, about.st_nlink - 2))
    return found


@functools.cache
def _spawner() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "cages")


def _spawn(command: list[str], fds: tuple[int, ...], variables: dict[str, str]) -> subprocess.Popen[bytes]:
    """Starts it from a thread that lives as long as this process: a cage dies with the thread that started it."""

    def run() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            pass_fds=fds,
            env=variables,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    return _spawner().submit(run).result()
