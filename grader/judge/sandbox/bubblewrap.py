"""The command line for bubblewrap: namespaces of its own, and of the file system only what a worker needs."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path

from grader.judge.sandbox import limits, sight
from grader.judge.sandbox.gpu import GpuAccess

__all__ = ["GRADER", "HOME", "WRITABLE", "caps_sizes", "command", "find"]

HOME = "/home/worker"
GRADER = "/opt/grader"  # what a worker imports of this package lies below
WRITABLE = {HOME: limits.HOME_BYTES, "/tmp": limits.TEMP_BYTES, "/dev/shm": limits.SHARED_BYTES}

_NODES = ("null", "zero", "full", "random", "urandom")
_LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
_PROC_READ_ONLY = ("/proc/sys", "/proc/sysrq-trigger")  # to root without capabilities they would be open
_PRIVILEGES = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")  # with which the trampoline becomes another user
_ETC = {
    "passwd": "worker:x:{uid}:{uid}::/home/worker:/bin/sh\n",
    "group": "worker:x:{uid}:\n",
    "hosts": "127.0.0.1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}


def find() -> str | None:
    return shutil.which("bwrap")


@functools.cache
def caps_sizes(program: str) -> bool:
    """Whether this version can give a tmpfs a size (0.7 and later)."""
    return "--size" in _help(program)


def command(
    program: str,
    inside: list[str],
    gpu: GpuAccess | None,
    uid: int,
    own_user: bool,
    seccomp: bytes,
    told: int,
) -> tuple[list[str], list[int]]:
    """The command that runs `inside` caged, and the descriptors that it needs, which the caller closes.

    Args:
        gpu: the one that it may use.
        uid: who the submission is.
        own_user: called by root, so that it can be another user of the system; else it is the caller, under that
            number, in a user namespace.
        seccomp: the filter, which bubblewrap's own first process keeps to as well; empty for none.
        told: a pipe into which bubblewrap writes who that first process is.
    """
    fds: list[int] = []
    arguments = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net", "--unshare-cgroup-try"]
    if own_user:
        arguments += ["--cap-drop", "ALL", *(part for name in _PRIVILEGES for part in ("--cap-add", name))]
    else:
        arguments += ["--unshare-user", "--uid", str(uid), "--gid", str(uid), "--cap-drop", "ALL"]
        arguments += ["--disable-userns"] if "--disable-userns" in _help(program) else []
    arguments += ["--die-with-parent", "--new-session", "--hostname", "worker", "--info-fd", str(told)]
    if seccomp:
        fds.append(_file(seccomp))
        arguments += ["--seccomp", str(fds[-1])]

    shown = sight.shown(gpu)
    secret = sight.hidden_in(path for path in shown if not path.is_symlink())
    own = {Path(folder): size for folder, size in WRITABLE.items()}
    for path in sorted({*shown, *secret, *own, Path("/dev")}, key=lambda path: (len(path.parts), path)):
        arguments += _folders_above(path)
        if path in own:
            size = ("--size", str(own[path])) if caps_sizes(program) else ()
            arguments += ["--perms", "1777", *size, "--tmpfs", str(path)]
        elif path in secret or path == Path("/dev"):
            arguments += ["--tmpfs", str(path)]
        elif path.is_symlink():
            arguments += ["--symlink", str(path.resolve()), str(path)]
        else:
            arguments += ["--ro-bind-try", str(path), str(path)]
    arguments += _folders_above(Path(GRADER, "grader/worker")) + _folders_above(Path("/etc/passwd"))
    for name in sight.MODULES:
        arguments += ["--ro-bind", str(sight.PACKAGE / name), f"{GRADER}/grader/{name}"]
    for name, text in _ETC.items():
        fds.append(_file(text.format(uid=uid).encode()))
        arguments += ["--perms", "0644", "--file", str(fds[-1]), f"/etc/{name}"]

    for node in (*(f"/dev/{name}" for name in _NODES), *(gpu.nodes if gpu is not None else ())):
        arguments += ["--dev-bind", node, node]
    arguments += [part for name, target in _LINKS.items() for part in ("--symlink", target, f"/dev/{name}")]
    arguments += ["--proc", "/proc"]
    arguments += [part for path in _PROC_READ_ONLY for part in ("--ro-bind-try", path, path)]
    arguments += [part for path in (*secret, "/dev", "/") for part in ("--remount-ro", str(path))]
    return [program, *arguments, "--chdir", HOME, "--", *inside], fds


def _folders_above(path: Path) -> list[str]:
    """Makes the folders above it, for all to enter: those that bubblewrap makes itself are its own user's alone."""
    return [part for folder in [*path.parents][-2::-1] for part in ("--dir", str(folder))]


def _file(data: bytes) -> int:
    fd = os.memfd_create("sandbox", os.MFD_CLOEXEC)
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


@functools.cache
def _help(program: str) -> str:
    return subprocess.run([program, "--help"], capture_output=True, text=True, timeout=20, check=False).stdout
