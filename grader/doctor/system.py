"""What the system lends: compilers, the sandbox, folders, a browser."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from grader.doctor.finding import Finding
from grader.hardware import cache_folder

__all__ = [
    "chromium",
    "compiler",
    "disk",
    "find_chromium",
    "folders",
    "ninja",
    "python_headers",
    "sandbox",
]

_FREE_GB = 2.0  # room for a few builds of `load_inline` and their caches


def compiler() -> Finding:
    """`load_inline` and Triton call it; C++20 is what the simulated CUDA needs."""
    program = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++") or shutil.which("clang++")
    install = "sudo apt-get install g++"
    if program is None:
        return Finding("C++ compiler", False, "none found", install)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "trial.cpp"
        source.write_text("#include <version>\n#include <concepts>\nint main() { return __cplusplus < 202002L; }\n")
        try:
            built = subprocess.run(
                [*program.split(), "-std=c++20", str(source), "-o", str(Path(folder) / "trial")],
                capture_output=True, text=True, timeout=120, check=False,
            )  # fmt: skip
            version = subprocess.run(
                [*program.split(), "--version"], capture_output=True, text=True, timeout=60, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return Finding("C++ compiler", False, f"{program}: {error}", install)
    first = (version.stdout.splitlines() or [program])[0]
    if built.returncode != 0:
        return Finding("C++ compiler", False, f"{first} builds no C++20 program", "sudo apt-get install g++")
    return Finding("C++ compiler", True, first)


def python_headers() -> Finding:
    """Extensions, and the small stub that Triton builds for the driver, include Python.h."""
    header = Path(sysconfig.get_path("include")) / "Python.h"
    if header.is_file():
        return Finding("Python headers", True, str(header.parent))
    package = f"python{sys.version_info[0]}.{sys.version_info[1]}-dev"
    return Finding("Python headers", False, f"{header} is not there", f"sudo apt-get install {package}")


def ninja() -> Finding:
    program = shutil.which("ninja", path=os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")]))
    if program is None:
        return Finding(
            "ninja", False, "not found; load_inline builds with it", f"{sys.executable} -m pip install ninja"
        )
    return Finding("ninja", True, program)


def sandbox() -> Finding:
    """Whether submissions are shut in. Without a sandbox no class is graded; one's own work is, and verdicts say so."""
    from grader.judge.sandbox import strength

    found = strength()
    if found == "bubblewrap":
        return Finding("sandbox", True, "bubblewrap in namespaces of its own", needed=False)
    value = f"{found}; a class or a board is not graded without one" if found.startswith("none") else f"weaker: {found}"
    if shutil.which("bwrap") is None:
        mend = "sudo apt-get install bubblewrap"
    elif Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").exists():
        mend = "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"
    else:
        mend = "sudo sysctl user.max_user_namespaces=15000"
    return Finding("sandbox", False, value, mend, needed=False)


def folders() -> Finding:
    """The cache and the temporary folder: builds are written there."""
    for folder in (cache_folder(), Path(tempfile.gettempdir())):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            return Finding(
                "folders", False, f"{folder} cannot be written to: {error.strerror}", f"chmod u+rwx {folder}"
            )
    return Finding("folders", True, f"{cache_folder()} and {tempfile.gettempdir()} can be written to")


def disk() -> Finding:
    folder = Path(tempfile.gettempdir())
    free = shutil.disk_usage(folder).free / 1e9
    value = f"{free:.0f} GB free in {folder}"
    if free < _FREE_GB:
        return Finding("disk", False, f"{value}; builds need {_FREE_GB:.0f} GB", "export TMPDIR=/a/folder/with/room")
    return Finding("disk", True, value)


def chromium() -> Finding:
    program = find_chromium()
    if program is None:
        return Finding(
            "Chromium",
            False,
            "not found; only the browser tests need it",
            "sudo apt-get install chromium",
            needed=False,
        )
    return Finding("Chromium", True, f"{program} (for the browser tests)", needed=False)


def find_chromium() -> str | None:
    """A Chromium that playwright can drive: the system's, else playwright's own."""
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        program = shutil.which(name)
        # Ubuntu's `chromium-browser` is a script that points to a snap.
        if program is not None and not Path(program).resolve().is_relative_to("/snap"):
            return program
    installed = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or Path.home() / ".cache" / "ms-playwright")
    own = sorted(installed.glob("chromium*/chrome-linux*/*"))
    return next((str(path) for path in reversed(own) if path.name in ("chrome", "headless_shell")), None)
