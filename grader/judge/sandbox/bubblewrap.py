"""Builds the bubblewrap command line: new namespaces, and only the files that a worker needs."""

from __future__ import annotations

import compileall
import functools
import os
import py_compile
import shutil
import subprocess
import tempfile
from pathlib import Path

from grader.judge.sandbox import cgroup, prebuilt, sight
from grader.judge.sandbox.sight import GpuAccess

HOME = "/home/worker"
GRADER = "/opt/grader"  # holds the modules of this package that a worker imports
PREBUILT = f"{GRADER}/prebuilt"  # the folder of built headers
WRITABLE = {HOME: cgroup.HOME_BYTES, "/tmp": cgroup.TEMP_BYTES, "/dev/shm": cgroup.SHARED_BYTES}

_NODES = ("null", "zero", "full", "random", "urandom")
_LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
_PROC_READ_ONLY = ("/proc/sys", "/proc/sysrq-trigger")  # root can write to them even without capabilities
_PRIVILEGES = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")  # the trampoline needs them to switch to another user
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
    program: str, inside: list[str], gpu: GpuAccess | None, uid: int, own_user: bool, seccomp: bytes, info: int
) -> tuple[list[str], list[int]]:
    """The command that runs `inside` in a sandbox, and the descriptors it needs, which the caller closes.

    Every process in the sandbox can read bubblewrap's command line and the source of each mount. So the options are
    in a file, and the grader's own modules are copied, not mounted.

    Args:
        gpu: the GPU that the sandbox may use.
        uid: the submission's user id.
        own_user: the caller is root, so the submission becomes another user of the system. Otherwise it stays the
            caller, shown as `uid` in a user namespace.
        seccomp: the filter, which also applies to bubblewrap's first process inside; empty for none.
        info: a pipe into which bubblewrap writes the pid of that process.
    """
    fds: list[int] = []
    arguments = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net", "--unshare-cgroup-try"]
    if own_user:
        arguments += ["--cap-drop", "ALL", *(part for name in _PRIVILEGES for part in ("--cap-add", name))]
    else:
        arguments += ["--unshare-user", "--uid", str(uid), "--gid", str(uid), "--cap-drop", "ALL"]
        arguments += ["--disable-userns"] if "--disable-userns" in _help(program) else []
    arguments += ["--die-with-parent", "--new-session", "--hostname", "worker", "--info-fd", str(info)]
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
    for path in sight.origin_files(shown):
        arguments += ["--ro-bind-try", "/dev/null", str(path)]
    files = {f"/etc/{name}": text.format(uid=uid).encode() for name, text in _ETC.items()}
    files |= {f"{GRADER}/grader/{name}": data for name, data in _modules().items()}
    files |= {f"{PREBUILT}/{name}": data for name, data in prebuilt.files().items() if gpu is None}
    for folder in sorted({folder for name in files for folder in Path(name).parents[:-1]}):
        arguments += ["--dir", str(folder)]
    for name, data in files.items():
        fds.append(_file(data))
        arguments += ["--perms", "0644", "--file", str(fds[-1]), name]

    for node in (*(f"/dev/{name}" for name in _NODES), *(gpu.nodes if gpu is not None else ())):
        arguments += ["--dev-bind", node, node]
    arguments += [part for name, target in _LINKS.items() for part in ("--symlink", target, f"/dev/{name}")]
    arguments += ["--proc", "/proc"]
    arguments += [part for path in _PROC_READ_ONLY for part in ("--ro-bind-try", path, path)]
    arguments += [part for path in (*secret, "/dev", "/") for part in ("--remount-ro", str(path))]
    arguments += ["--chdir", HOME]
    fds.append(_file(b"".join(os.fsencode(argument) + b"\0" for argument in arguments)))
    return [program, "--args", str(fds[-1]), "--", *inside], fds


@functools.cache
def _modules() -> dict[str, bytes]:
    """The files that a worker imports, by their path in the package: sources, and bytecode that is never stale."""
    with tempfile.TemporaryDirectory() as scratch:
        for name in sight.MODULES:
            original, copy = sight.PACKAGE / name, Path(scratch, name)
            if original.is_dir():
                shutil.copytree(original, copy, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copyfile(original, copy)
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        compileall.compile_dir(
            scratch, quiet=2, stripdir=scratch, prependdir=f"{GRADER}/grader", invalidation_mode=mode
        )
        found = sorted(path for path in Path(scratch).rglob("*") if path.is_file())
        return {path.relative_to(scratch).as_posix(): path.read_bytes() for path in found}


def _folders_above(path: Path) -> list[str]:
    """Options that create the parent folders for all users; bubblewrap's own are for its user only."""
    return [part for folder in [*path.parents][-2::-1] for part in ("--dir", str(folder))]


def _file(data: bytes) -> int:
    fd = os.memfd_create("sandbox", os.MFD_CLOEXEC)
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


@functools.cache
def _help(program: str) -> str:
    return subprocess.run([program, "--help"], capture_output=True, text=True, timeout=20, check=False).stdout
