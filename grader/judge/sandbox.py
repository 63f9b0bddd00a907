"""The cage around a worker. The trusted side builds it: bubblewrap where the system allows it, else a plain process.

This is the thin form: a read-only system, a home and a temp of its own, no network, no capabilities, namespaces of its
own. What is not yet promised stands in SECURITY.md.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from glob import glob
from pathlib import Path

from grader.hardware import cuda_home, torch_cuda

__all__ = ["cage", "environment", "import_folders", "strength"]

PROJECT = Path(__file__).resolve().parents[2]
_KEPT = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "CC", "CXX")
_NAMESPACES = ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net")


def environment(home: Path) -> dict[str, str]:
    """The worker's whole environment: nothing of the caller's but where compilers and libraries are."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    toolkit = cuda_home(torch_cuda())
    if toolkit is not None and not {"CUDA_HOME", "CUDA_PATH"} & set(kept):
        kept["CUDA_HOME"] = str(toolkit)
    paths = {"HOME": str(home), "TMPDIR": str(home), "TRITON_CACHE_DIR": str(home / "triton")}
    return kept | paths | {"TORCH_EXTENSIONS_DIR": str(home / "extensions"), "PYTHONDONTWRITEBYTECODE": "1"}


@functools.cache
def strength() -> str:
    """ "bubblewrap", or why it is only "process: …"."""
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        return "process: bubblewrap is not installed"
    trial = subprocess.run([bwrap, *_NAMESPACES, "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"],
                           capture_output=True, text=True, timeout=20, check=False)  # fmt: skip
    if trial.returncode:
        return "process: this system allows bubblewrap no user namespace"
    return "bubblewrap"


def cage(command: list[str], home: Path) -> list[str]:
    """The command that runs `command` caged, with `home` the only folder that it can write to."""
    if strength() != "bubblewrap":
        return command
    devices = [arg for node in glob("/dev/nvidia*") for arg in ("--dev-bind", node, node)]
    visible = {Path(sys.prefix), Path(sys.base_prefix), *map(Path, import_folders())}
    shown = [arg for path in sorted(visible) for arg in ("--ro-bind-try", str(path), str(path))]
    return [
        "bwrap", *_NAMESPACES, "--unshare-cgroup-try", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
        "--ro-bind", "/", "/", "--dev", "/dev", *devices, "--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys",
        "--tmpfs", "/tmp", "--tmpfs", "/run", *shown,
        "--bind", str(home), str(home), "--chdir", str(home), "--", *command,
    ]  # fmt: skip


def import_folders() -> list[str]:
    """Where a process of ours finds `grader` and what PYTHONPATH adds: `-I` keeps Python from reading that itself."""
    added = [str(Path(path).resolve()) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    return list(dict.fromkeys([str(PROJECT), *added]))
