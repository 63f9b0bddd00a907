"""Has `nvcc` be found: the system's, else pip's, else a stand-in: NVRTC on a GPU, without one the C++ compiler."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
from pathlib import Path

__all__ = ["offer"]

_ROOT = Path(__file__).parents[2]  # where `grader` lies: the stand-ins are modules of it
_SCRIPT = '#!/bin/sh\nPYTHONPATH="{root}" exec "{python}" -m {module} "$@"\n'


def offer(simulated: bool) -> None:
    """Puts a folder with an `nvcc` into this process's PATH, where it needs one. A second call does nothing."""
    if os.environ.get("GRADER_NVCC"):
        return
    if not simulated and shutil.which("nvcc"):
        return
    folder = None if simulated else _of_pip()
    if folder is None:
        module = "grader.worker.cupy_on_cpu.nvcc" if simulated else "grader.worker.nvcc_by_nvrtc"
        folder = Path(tempfile.mkdtemp(prefix="nvcc-"))
        script = folder / "nvcc"
        script.write_text(_SCRIPT.format(root=_ROOT, python=sys.executable, module=module))
        script.chmod(0o755)
    os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    os.environ["GRADER_NVCC"] = str(folder)


def _of_pip() -> Path | None:
    """The folder of the `nvcc` that pip brings with CUDA 13."""
    try:
        found = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError):
        return None
    for root in (found.submodule_search_locations or ()) if found else ():
        for path in sorted(Path(root).glob("cu*/bin/nvcc")):
            if os.access(path, os.X_OK):
                return path.parent
    return None
