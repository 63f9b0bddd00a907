"""Starts a process in bubblewrap where this system allows it, which is found out by trying, once a process."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import platform
import secrets
import select
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.errors import MachineLacks
from grader.judge.sandbox import bubblewrap, cgroup, seccomp, sight
from grader.judge.sandbox.cgroup import THREADS
from grader.judge.sandbox.process_tree import Caged
from grader.judge.sandbox.sight import GpuAccess, gpu_access

# The kinds of cage there are, and what each lacks.


@dataclass(frozen=True)
class Form:
    """A kind of cage. `own_user`: the submission is another user of the system, which only root can do."""

    kind: str  # bubblewrap or none
    own_user: bool = False
    lacking: tuple[str, ...] = ()  # clauses, for whoever reads the verdict

    def __str__(self) -> str:
        return f"{self.kind}: {'; '.join(self.lacking)}" if self.lacking else self.kind


def forms() -> list[Form]:
    """Those to be tried on this system, the strongest first; none without bubblewrap."""
    program = bubblewrap.find()
    if program is None:
        return []
    lacking: tuple[str, ...] = () if seccomp.program() else (f"no filter of system calls for {platform.machine()}",)
    lacking += () if bubblewrap.caps_sizes(program) else ("temporary files have no limit",)
    if os.geteuid() != 0:
        return [Form("bubblewrap", lacking=lacking)]
    as_root = (*lacking, "it is root, without its capabilities")
    return [Form("bubblewrap", own_user=True, lacking=lacking), Form("bubblewrap", lacking=as_root)]


def without() -> Form:
    """A plain process, where none of `forms` works."""
    installed = bubblewrap.find() is not None
    reason = "this system allows bubblewrap no namespaces" if installed else "bubblewrap is not installed"
    return Form("none", lacking=(reason,))


# The worker's whole environment: where compilers and libraries are, and folders of its own for all that is written.

_KEPT = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "CC", "CXX", "CUDA_HOME", "CUDA_PATH")
_LISTS = {"PATH", "LD_LIBRARY_PATH"}
_TOOLKIT = {"CUDA_HOME", "CUDA_PATH"}  # which is shown where there is a GPU
_FOLDERS = {
    "TMPDIR": "tmp",
    "XDG_CACHE_HOME": "cache",
    "TRITON_CACHE_DIR": "triton",
    "TORCH_EXTENSIONS_DIR": "extensions",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "NUMBA_CACHE_DIR": "numba",
    "CUPY_CACHE_DIR": "cupy",
    "CUDA_CACHE_PATH": "cuda",
}
_POOLS = ("OMP", "MKL", "OPENBLAS", "NUMEXPR", "NUMBA")


def environment(home: str, gpu: GpuAccess | None) -> dict[str, str]:
    """For a worker whose home will be `home`. Of the caller's folders it names only those that a cage shows."""
    shown = sight.shown(gpu)
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    for name in (_LISTS | _TOOLKIT if gpu is None else _LISTS) & kept.keys():
        kept[name] = os.pathsep.join(each for each in kept[name].split(os.pathsep) if sight.within(each, shown))
    kept = {name: value for name, value in kept.items() if value}
    if gpu is not None and gpu.toolkit is not None and not {"CUDA_HOME", "CUDA_PATH"} & set(kept):
        kept["CUDA_HOME"] = str(gpu.toolkit)
    programs = os.path.dirname(sys.executable)  # pip puts ninja there; the caller's PATH may not name it
    kept["PATH"] = os.pathsep.join([programs, kept.get("PATH", os.defpath)])
    kept |= {name: f"{home}/{folder}" for name, folder in _FOLDERS.items()}
    kept |= {f"{pool}_NUM_THREADS": str(THREADS) for pool in _POOLS}
    return kept | {
        "HOME": home,
        "USER": "worker",
        "LOGNAME": "worker",
        "CUDA_VISIBLE_DEVICES": gpu.visible if gpu is not None else "",
        "MAX_JOBS": str(THREADS),  # of ninja
        "TORCHINDUCTOR_COMPILE_THREADS": "1",  # more are processes that each import torch
        "PYTHONDONTWRITEBYTECODE": "1",
    }


# Starts a process in bubblewrap where this system allows it, which is found out by trying, once a process.

_TRAMPOLINE = Path(__file__).with_name("trampoline.py")
_TRIAL_LIMIT_S = 60.0
_BEGIN_LIMIT_S = 20.0  # bubblewrap's first process is there after milliseconds
_FIRST_UID, _UIDS = 61184, 4096  # the range that systemd, too, takes users from for services that end


def start(code: str, fds: tuple[int, ...], device: str, sandbox: bool | None = None) -> Caged:
    """Runs Python code in a cage; stdout and stderr come through one pipe.

    Args:
        code: it can import grader.worker and grader.protocol, and what is installed.
        fds: descriptors that it inherits, under the same numbers.
        device: "cuda" or "simulator"; the second sees no GPU.
        sandbox: as for `decided`.
    """
    return start_as(decided(sandbox), code, fds, device)


def strength(sandbox: bool | None = None) -> str:
    """ "bubblewrap", perhaps with what it lacks; or "none" with the reason: "none: bubblewrap is not installed"."""
    return str(decided(sandbox))


def must_be_caged() -> None:
    """To be called before other people's submissions are run.

    Raises:
        MachineLacks: there is no sandbox here.
    """
    decided(True)


@functools.cache
def decided(sandbox: bool | None) -> Form:
    """The form that `start` uses: the first that works.

    Args:
        sandbox: False for a plain process; None for one where no sandbox works, as for one's own code.

    Raises:
        MachineLacks: none works, and `sandbox` is True.
    """
    if sandbox is False:
        return Form("none", lacking=("--no-sandbox was given",))
    found = next((form for form in forms() if works(form)), None) or without()
    if sandbox and found.kind == "none":
        raise MachineLacks(
            f"Other people's code runs in a sandbox, and there is none here: {found.lacking[0]}. `grader doctor` says "
            "what to do. On a machine that you can throw away, --no-sandbox runs it without one."
        )
    return found


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
        "rlimits": cgroup.rlimits(cgroup.TASKS + (0 if form.own_user else _tasks_of_user())),
        "locked": form.kind == "bubblewrap",
    }
    if form.kind == "none":
        return _plain(cage, gpu_access(device))
    group = cgroup.make()
    try:
        return _in_bubblewrap(cage, gpu_access(device), group)
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
        seccomp=seccomp.program(),
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


def _plain(cage: dict[str, Any], gpu: GpuAccess | None) -> Caged:
    home = Path(tempfile.mkdtemp(prefix="grader-worker-"))
    try:
        cage["path"].insert(0, _links(home))
        return Caged(_spawn(_python(cage), cage["fds"], environment(str(home), gpu)), home=home)
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
