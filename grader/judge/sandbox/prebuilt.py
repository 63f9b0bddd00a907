"""Headers of the simulator, built once for all workers of a judge, in a folder that they can only read."""

from __future__ import annotations

import atexit
import contextlib
import functools
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from grader.judge.sandbox.sight import import_folders

__all__ = ["build_headers_for", "folder"]

_LIMIT_S = 120.0
_BUILDS = re.compile(r"\bload_inline\b|\bRaw(?:Kernel|Module)\b")
_once = threading.Lock()


@functools.cache
def folder() -> Path:
    """The folder, which every user may read. It is deleted when this process ends."""
    made = Path(tempfile.mkdtemp(prefix="grader-prebuilt-"))
    made.chmod(0o755)
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def build_headers_for(source: str) -> None:
    """Build the headers, unless the source of this submission contains no CUDA C++ or they are built."""
    if _BUILDS.search(source):
        with _once:
            _build()


@functools.cache
def _build() -> None:
    code = (
        f"import sys; sys.path[:0] = {import_folders()!r}\n"
        "from pathlib import Path\nfrom grader.worker.simulator.header_build import build\n"
        "build(Path(sys.argv[1]))"
    )
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):  # without them, each cell compiles the headers
        subprocess.run([sys.executable, "-I", "-c", code, str(folder())], timeout=_LIMIT_S, check=False)
