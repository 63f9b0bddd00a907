"""Starts a process in bubblewrap if this system allows it. The first start tries out which form works."""

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
from grader.judge.sandbox import bubblewrap, cgroup, prebuilt, seccomp, sight
from grader.judge.sandbox.process_tree import Caged
from grader.judge.sandbox.sight import GpuAccess, gpu_access
from grader.protocol.target import PREBUILT


@dataclass(frozen=True)
class Form:
    """A kind of sandbox. `own_user`: the submission runs as another user of the system, which needs root."""

    kind: str  # bubblewrap or none
    own_user: bool = False
    lacking: tuple[str, ...] = ()  # clauses for the verdict: the protections that are missing

    def __str__(self) -> str:
        return f"{self.kind}: {'; '.join(self.lacking)}" if self.lacking else self.kind


def forms() -> list[Form]:
    """The forms to try on this system, the strongest first; none without bubblewrap."""
    program = bubblewrap.find()
    if program is None:
        return []
    lacking: tuple[str, ...] = () if seccomp.program() else (f"no filter of system calls for {platform.machine()}",)
    lacking += () if bubblewrap.caps_sizes(program) else ("temporary files have no limit",)
    if os.geteuid() != 0:
        return [Form("bubblewrap", lacking=lacking)]
    as_root = (*lacking, "the submission runs as root, without capabilities")
    return [Form("bubblewrap", own_user=True, lacking=lacking), Form("bubblewrap", lacking=as_root)]


# The worker's whole environment: where compilers and libraries are, and its own folders for everything it writes.

_KEPT = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "CC", "CXX", "CUDA_HOME", "CUDA_PATH", "GRADER_TARGET")
_LISTS = {"PATH", "LD_LIBRARY_PATH"}
_TOOLKIT = {"CUDA_HOME", "CUDA_PATH"}  # visible if the worker has a GPU
_FOLDERS = {
    "TMPDIR": "tmp", "XDG_CACHE_HOME": "cache", "TRITON_CACHE_DIR": "triton", "TORCH_EXTENSIONS_DIR": "extensions",
    "TORCHINDUCTOR_CACHE_DIR": "inductor", "NUMBA_CACHE_DIR": "numba", "CUPY_CACHE_DIR": "cupy",
    "CUDA_CACHE_PATH": "cuda",
}  # fmt: skip
_POOLS = ("OMP", "MKL", "OPENBLAS", "NUMEXPR", "NUMBA")


def environment(home: str, gpu: GpuAccess | None) -> dict[str, str]:
    """The environment of a worker with this home. It names only those of the caller's folders that a sandbox shows."""
    shown = sight.shown(gpu)
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    for name in (_LISTS | _TOOLKIT if gpu is None else _LISTS) & kept.keys():
        kept[name] = os.pathsep.join(each for each in kept[name].split(os.pathsep) if sight.within(each, shown))
    kept = {name: value for name, value in kept.items() if value}
    if gpu is not None and gpu.toolkit is not None and not _TOOLKIT & kept.keys():
        kept["CUDA_HOME"] = str(gpu.toolkit)
    programs = os.path.dirname(sys.executable)  # where pip installs ninja, even if it is not in PATH
    kept["PATH"] = os.pathsep.join([programs, kept.get("PATH", os.defpath)])
    kept |= {name: f"{home}/{folder}" for name, folder in _FOLDERS.items()}
    if gpu is None and (made := prebuilt.folder()) is not None:
        kept[PREBUILT] = str(made)
    threads = 1 if gpu is None else cgroup.THREADS  # its cases are small without a GPU, and judges work side by side
    kept |= {f"{pool}_NUM_THREADS": str(threads) for pool in _POOLS}
    return kept | {
        "HOME": home,
        "USER": "worker",
        "LOGNAME": "worker",
        "CUDA_VISIBLE_DEVICES": gpu.visible if gpu is not None else "",
        "MAX_JOBS": str(cgroup.THREADS),  # for ninja
        "TORCHINDUCTOR_COMPILE_THREADS": "1",  # each further one is a process that imports torch
        "PYTHONDONTWRITEBYTECODE": "1",
    }


_TRAMPOLINE = Path(__file__).with_name("trampoline.py")
_TRIAL_LIMIT_S = 60.0
_BEGIN_LIMIT_S = 20.0  # bubblewrap's first process normally appears within milliseconds
_FIRST_UID, _UIDS = 61184, 4096  # systemd's range for temporary users


def start(code: str, fds: tuple[int, ...], device: str, sandbox: bool | None = None) -> Caged:
    """Run Python code in a sandbox; stdout and stderr share one pipe.

    Args:
        code: may import grader.worker, grader.protocol and installed packages.
        fds: descriptors that it inherits under the same numbers.
        device: "cuda" or "simulator", which sees no GPU.
        sandbox: as for `decided`.
    """
    return start_as(decided(sandbox), code, fds, device)


def strength(sandbox: bool | None = None) -> str:
    """Describe the sandbox: "bubblewrap", with what is missing, or "none: " and the reason."""
    return str(decided(sandbox))


def must_be_caged() -> None:
    """Raise MachineLacks if there is no sandbox; called before other people's submissions run."""
    decided(True)


@functools.cache
def decided(sandbox: bool | None) -> Form:
    """The first form that works.

    Args:
        sandbox: False for a plain process; None, for the user's own code, for a plain process only if no form works.

    Raises:
        MachineLacks: no form works and `sandbox` is True.
    """
    if sandbox is False:
        return Form("none", lacking=("--no-sandbox was given",))
    if found := next((form for form in forms() if works(form)), None):
        return found
    installed = bubblewrap.find() is not None
    reason = "bubblewrap may not create namespaces here" if installed else "bubblewrap is not installed"
    if sandbox:
        raise MachineLacks(
            f"Other people's code runs only in a sandbox, and there is none here: {reason}. `grader doctor` says "
            "what to do. On a machine that you can throw away, --no-sandbox runs the code without one."
        )
    return Form("none", lacking=(reason,))


def works(form: Form) -> bool:
    """Whether a process starts in this form and can import the worker's modules."""
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
    """`start` in this form."""
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
    program, own, uid = bubblewrap.find() or "bwrap", cage["uid"] is not None, cage["uid"] or _FIRST_UID
    info, write_end = os.pipe()
    command, own_fds = bubblewrap.command(program, _python(cage), gpu, uid, own, seccomp.program(), write_end)
    try:
        fds = (*cage["fds"], *own_fds, write_end)
        variables = environment(bubblewrap.HOME, gpu) | ({} if gpu is not None else {PREBUILT: bubblewrap.PREBUILT})
        process = _spawn(cgroup.entering(group, command), fds, variables)
        os.close(write_end)
        write_end = -1
        return Caged(process, _first_process(info), None, group, bubblewrap.WRITABLE)
    finally:
        for fd in (info, write_end, *own_fds):
            with contextlib.suppress(OSError):
                os.close(fd)


def _first_process(info: int) -> int | None:
    """A pidfd of bubblewrap's first process inside; None if it did not start."""
    data = b""
    ready = select.poll()
    ready.register(info, select.POLLIN)
    while b"}" not in data:
        if not ready.poll(_BEGIN_LIMIT_S * 1000) or not (more := os.read(info, 4096)):
            return None
        data += more
    with contextlib.suppress(ProcessLookupError):
        return os.pidfd_open(json.loads(data)["child-pid"])
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
    """A folder for sys.path that contains only those modules of this package that a worker imports."""
    package = home / ".import" / "grader"
    package.mkdir(parents=True)
    for name in sight.MODULES:
        (package / name).symlink_to(sight.PACKAGE / name)
    return str(package.parent)


def _free_uid() -> int:
    """A user id that no process has now, because the kernel counts limits and allows signals per user."""
    taken = {uid for uid, _ in _running()}
    while (uid := _FIRST_UID + secrets.randbelow(_UIDS)) in taken:
        pass
    return uid


def _tasks_of_user() -> int:
    """Processes and threads of the grading user, which count towards the limit of a submission with the same user."""
    return sum(threads for uid, threads in _running() if uid == os.geteuid())


def _running() -> list[tuple[int, int]]:
    """The user and the number of threads of every process."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                status = os.stat(f"/proc/{name}/task")
                found.append((status.st_uid, status.st_nlink - 2))
    return found


@functools.cache
def _spawner() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "cages")


def _spawn(command: list[str], fds: tuple[int, ...], variables: dict[str, str]) -> subprocess.Popen[bytes]:
    """Start a command from a thread that never ends: a sandbox dies with the thread that started it."""

    def run() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command, pass_fds=fds, env=variables, cwd="/", start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    return _spawner().submit(run).result()
