"""Counts the processes, descriptors, memory and folders that the grader has now."""

from __future__ import annotations

import contextlib
import ctypes
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_PR_SET_CHILD_SUBREAPER = 36
_OTHERS: set[int] = set()  # children of this process that are not counted, such as torch's compilers
_GPU_LIMIT_MIB = 64
_FD_LIMIT = 4  # a request in flight, a log file; one leak per grading would be far more


@dataclass(frozen=True)
class Census:
    """`judge_gpu_mib` is None if NVML does not tell processes apart, as in most containers."""

    processes: int
    descriptors: int
    judge_host_mib: float
    folders: int
    disk_kib: int
    shm: int
    gpu_mib: int | None = None
    judge_gpu_mib: int | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@contextlib.contextmanager
def own_temp() -> Iterator[Path]:
    """Use a private temp folder, and adopt every orphan among the descendants, so that `census` finds all leftovers."""
    _OTHERS.update(descendants())
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before, variable = tempfile.tempdir, os.environ.get("TMPDIR")
    with tempfile.TemporaryDirectory(prefix="grader-bench-", ignore_cleanup_errors=True) as made:
        tempfile.tempdir, os.environ["TMPDIR"] = made, made
        try:
            yield Path(made)
        finally:
            tempfile.tempdir = before
            os.environ.pop("TMPDIR")
            if variable is not None:
                os.environ["TMPDIR"] = variable
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
            _OTHERS.clear()


def descendants() -> dict[int, str]:
    """Return the command line of every descendant by pid, except for those older than `own_temp`. Reap dead orphans."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                parents[int(entry.name)] = int(parent)
            elif int(parent) == os.getpid():
                with contextlib.suppress(OSError):
                    os.waitpid(int(entry.name), os.WNOHANG)
    found: dict[int, str] = {}
    layer = {os.getpid()}
    while layer := {pid for pid, parent in parents.items() if parent in layer} - _OTHERS:
        for pid in layer:
            with contextlib.suppress(OSError):
                found[pid] = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    return found


def judge_pid(family: dict[int, str] | None = None) -> int:
    """Return the pid of the judge among the descendants, or 0 if there is none."""
    family = descendants() if family is None else family
    return next((pid for pid, command in family.items() if "grader.judge.service" in command), 0)


def census(temp: Path) -> Census:
    """Count everything now. `temp` is the folder from `own_temp`."""
    family = descendants()
    judge = judge_pid(family)
    folders, size = 0, 0
    for path, _, files in os.walk(temp):
        folders += len(Path(path).relative_to(temp).parts) in (1, 2)
        for name in files:
            with contextlib.suppress(OSError):
                size += os.lstat(os.path.join(path, name)).st_blocks * 512
    gpu, of_judge = _gpu(judge)
    return Census(
        processes=len(family),
        descriptors=_descriptors(judge),
        judge_host_mib=_resident_mib(judge),
        folders=folders,
        disk_kib=size // 1024,
        shm=len(list(Path("/dev/shm").glob("*"))) if Path("/dev/shm").is_dir() else 0,
        gpu_mib=gpu,
        judge_gpu_mib=of_judge,
    )


def settled(temp: Path, like: Census | None = None, limit_s: float = 40.0, quiet_s: float = 4.0) -> Census:
    """Return the census once it is unchanged for `quiet_s`, or the same as `like`, or after `limit_s`."""
    ends, last, since = time.monotonic() + limit_s, census(temp), time.monotonic()
    while time.monotonic() < ends:
        if like is not None and not grown(like, last) and last.processes == like.processes:
            return last
        time.sleep(0.5)
        now = census(temp)
        if _still(now) != _still(last):
            since = time.monotonic()
        last = now
        if time.monotonic() - since > quiet_s and (like is None or now.processes <= like.processes):
            break
    return last


def _still(found: Census) -> tuple[int, int, int]:
    return found.processes, found.folders, (found.gpu_mib or 0) // 8


def grown(before: Census, after: Census) -> list[str]:
    """Describe what leaked between two settled censuses, one entry per leak."""
    found = []
    if after.processes != before.processes:
        found.append(f"processes: {before.processes} before, {after.processes} after")
    if after.descriptors > before.descriptors + _FD_LIMIT:
        found.append(f"the judge's descriptors: {before.descriptors} before, {after.descriptors} after")
    if before.gpu_mib is not None and after.gpu_mib is not None and after.gpu_mib > before.gpu_mib + _GPU_LIMIT_MIB:
        found.append(f"GPU memory: {before.gpu_mib} MiB before, {after.gpu_mib} MiB after")
    if after.folders > before.folders:
        found.append(f"temp folders: {before.folders} before, {after.folders} after")
    return found


def _descriptors(pid: int) -> int:
    with contextlib.suppress(OSError):
        return len(os.listdir(f"/proc/{pid}/fd"))
    return 0


def _resident_mib(pid: int) -> float:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return round(int(line.split()[1]) / 1024, 1)
    return 0.0


def _gpu(judge: int) -> tuple[int | None, int | None]:
    try:
        import pynvml

        pynvml.nvmlInit()
        device = pynvml.nvmlDeviceGetHandleByIndex(0)
        used = pynvml.nvmlDeviceGetMemoryInfo(device).used >> 20
        own = [each.usedGpuMemory for each in pynvml.nvmlDeviceGetComputeRunningProcesses(device) if each.pid == judge]
    except Exception:  # no NVML, no GPU, or no permission
        return None, None
    return used, own[0] >> 20 if own and own[0] else None
