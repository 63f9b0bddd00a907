"""The worker's whole environment: where compilers and libraries are, and folders of its own for all that is written."""

from __future__ import annotations

import os
import sys

from grader.judge.sandbox import sight
from grader.judge.sandbox.gpu import GpuAccess
from grader.judge.sandbox.limits import THREADS

__all__ = ["environment"]

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
