"""Headers of the simulator, built once for all workers of a judge while the first CUDA C++ is graded.

Workers that start later get a copy in their sandbox: a mount would tell where it comes from.
"""

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
from grader.protocol.target import PREBUILT_OBJECT as OBJECT

__all__ = ["build_headers_for", "files", "folder"]

_LIMIT_S = 120.0
_BUILDS = re.compile(r"\bload_inline\b|\bRaw(?:Kernel|Module)\b")
_begun = threading.Event()


@functools.cache
def folder() -> Path:
    """The folder, which every user may read. It is deleted when this process ends."""
    made = Path(tempfile.mkdtemp(prefix="grader-prebuilt-"))
    made.chmod(0o755)
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def files() -> dict[str, bytes]:
    """The built files, by name; none before they are complete."""
    built = folder() / OBJECT
    return {path.name: path.read_bytes() for path in (built, *folder().glob("*.gch"))} if built.exists() else {}


def build_headers_for(source: str) -> None:
    """Start to build the headers, unless the source of this submission contains no CUDA C++ or it was done before."""
    if _BUILDS.search(source) and not _begun.is_set():
        _begun.set()
        threading.Thread(target=_build, name="headers", daemon=True).start()


def _build() -> None:
    code = (
        f"import sys; sys.path[:0] = {import_folders()!r}\n"
        "from pathlib import Path\nfrom grader.worker.simulator.header_build import build\n"
        "build(Path(sys.argv[1]))"
    )
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):  # without them, each cell compiles the headers
        subprocess.run([sys.executable, "-I", "-c", code, str(folder())], timeout=_LIMIT_S, check=False)
