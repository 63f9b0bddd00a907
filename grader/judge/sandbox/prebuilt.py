"""Headers of the simulator, built once for all workers of a judge while the first CUDA C++ is graded.

Workers that start later get a copy in their sandbox: a mount would tell where it comes from.
"""

from __future__ import annotations

import atexit
import contextlib
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
_made: list[Path] = []


def folder() -> Path | None:
    """The folder, which every user may read; None before it is needed. It is deleted when this process ends."""
    return _made[0] if _made else None


def files() -> dict[str, bytes]:
    """The built files, by name; none before they are complete."""
    made = folder()
    if made is None or not (made / OBJECT).exists():
        return {}
    return {path.name: path.read_bytes() for path in (made / OBJECT, *made.glob("*.gch"))}


def build_headers_for(source: str) -> None:
    """Start to build the headers, unless the source of this submission contains no CUDA C++ or it was done before."""
    if _BUILDS.search(source) and not _begun.is_set():
        _begun.set()
        made = Path(tempfile.mkdtemp(prefix="grader-prebuilt-"))
        made.chmod(0o755)
        atexit.register(shutil.rmtree, made, ignore_errors=True)
        _made.append(made)
        threading.Thread(target=_build, args=(made,), name="headers", daemon=True).start()


def _build(folder: Path) -> None:
    code = (
        f"import sys; sys.path[:0] = {import_folders()!r}\n"
        "from pathlib import Path\nfrom grader.worker.simulator.header_build import build\n"
        "build(Path(sys.argv[1]))"
    )
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):  # without them, each cell compiles the headers
        subprocess.run([sys.executable, "-I", "-c", code, str(folder)], timeout=_LIMIT_S, check=False)
