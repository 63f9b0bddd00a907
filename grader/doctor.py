"""`grader doctor`: what this machine can do, what will be simulated, and the command that fixes each problem."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from grader.hardware import CUDA_13_DRIVER, Gpu, cache_folder, cuda_home, cuda_version, extra, gpus
from grader.installation import DISTRIBUTION
from grader.verdict import PRACTICE_CLOCK

# The findings of a check-up, and the table that shows them.


@dataclass(frozen=True)
class Finding:
    """The result of one check. `fix` is a command, or "" if there is nothing to fix.

    If it is `needed`, a learner's work depends on it. Otherwise a problem makes something weaker or slower, or matters
    only to the tests.
    """

    name: str
    ok: bool
    value: str
    fix: str = ""
    needed: bool = True


def healthy(findings: Sequence[Finding]) -> bool:
    """Whether everything that a learner needs works."""
    return all(finding.ok for finding in findings if finding.needed)


def as_text(findings: Sequence[Finding]) -> str:
    """A table for people, with the command that fixes each problem."""
    width = max(len(finding.name) for finding in findings)
    lines = []
    for finding in findings:
        mark = "ok  " if finding.ok else "FAIL" if finding.needed else "weak"
        lines.append(f"{mark}  {finding.name:<{width}}  {finding.value}")
        if finding.fix:
            lines.append(f"      {'':<{width}}  fix: {finding.fix}")
    problems = [finding.name for finding in findings if finding.needed and not finding.ok]
    if problems:
        lines += ["", f"Some of what a learner needs does not work here yet: {', '.join(problems)}."]
    else:
        lines += ["", "Everything that a learner needs works here."]
    return "\n".join(lines)


def to_dicts(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Ready for `json.dumps`."""
    return [asdict(finding) for finding in findings]


# Python and the packages that the course needs.

REINSTALL = "make clean && make lab"


def python() -> Finding:
    supported = (3, 11) <= sys.version_info[:2] < (3, 15)
    fix = "" if supported else "make clean && make lab PYTHON=python3.12"
    return Finding("Python", supported, f"{platform.python_version()} ({sys.executable})", fix)


def package(name: str) -> Finding:
    """Whether a package is installed in a version that this project supports."""
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return Finding(name, False, "not installed", "make lab")
    wanted = _wanted(name)
    if wanted is not None and not wanted.contains(version, prereleases=True):
        return Finding(name, False, f"{version}; the course needs {wanted}", REINSTALL)
    return Finding(name, True, version)


def _wanted(name: str) -> Any:
    """The versions of a package that this project's metadata allows, as packaging's SpecifierSet; None if unknown."""
    try:
        from packaging.requirements import Requirement

        requirements = map(Requirement, importlib.metadata.requires(DISTRIBUTION) or [])
    except (ImportError, importlib.metadata.PackageNotFoundError):
        return None
    return next((each.specifier for each in requirements if each.name == name and each.marker is None), None)


# The system: compilers, the sandbox, folders, a browser.

_FREE_GB = 2.0  # room for a few builds of `load_inline` and their caches


def compiler() -> Finding:
    """`load_inline` and Triton call a C++ compiler; the simulated CUDA needs C++20."""
    program = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
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
        return Finding("C++ compiler", False, f"{first} cannot build a C++20 program", "sudo apt-get install g++")
    return Finding("C++ compiler", True, first)


def python_headers() -> Finding:
    """Extensions, and the small stub that Triton builds for the driver, include Python.h."""
    header = Path(sysconfig.get_path("include")) / "Python.h"
    if header.is_file():
        return Finding("Python headers", True, str(header.parent))
    package = f"python{sys.version_info[0]}.{sys.version_info[1]}-dev"
    return Finding("Python headers", False, f"{header} does not exist", f"sudo apt-get install {package}")


def ninja() -> Finding:
    program = shutil.which("ninja", path=os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")]))
    if program is None:
        return Finding("ninja", False, "not found; load_inline needs it", f"{sys.executable} -m pip install ninja")
    return Finding("ninja", True, program)


def sandbox() -> Finding:
    """Whether submissions run in a sandbox. Without one no class is graded. A learner's own work is, with a note."""
    from grader.judge.sandbox import strength

    found = strength()
    if found == "bubblewrap":
        return Finding("sandbox", True, "bubblewrap, in its own namespaces", needed=False)
    value = f"{found}; a class or a board is not graded without one" if found.startswith("none") else f"weaker: {found}"
    if shutil.which("bwrap") is None:
        fix = "sudo apt-get install bubblewrap"
    elif Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").exists():
        fix = "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"
    else:
        fix = "sudo sysctl user.max_user_namespaces=15000"
    return Finding("sandbox", False, value, fix, needed=False)


def folders() -> Finding:
    """Whether builds can be written to the cache and to the temporary folder."""
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
        said, remedy = "not found; only the browser tests need it", "sudo apt-get install chromium"
        return Finding("Chromium", False, said, remedy, needed=False)
    return Finding("Chromium", True, f"{program} (for the browser tests)", needed=False)


def find_chromium() -> str | None:
    """A Chromium that playwright can drive: the system's or playwright's own."""
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        program = shutil.which(name)
        # Ubuntu's `chromium-browser` is a script that points to a snap.
        if program is not None and not Path(program).resolve().is_relative_to("/snap"):
            return program
    installed = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or Path.home() / ".cache" / "ms-playwright")
    own = sorted(installed.glob("chromium*/chrome-linux*/*"))
    return next((str(path) for path in reversed(own) if path.name in ("chrome", "headless_shell")), None)


# The GPU, and whether torch, CuPy and the CUDA compiler can use it.


def gpu(found: tuple[Gpu, ...]) -> Finding:
    """A machine without a GPU has no problem: the course says what it cannot show."""
    if not found:
        return Finding("GPU", True, "none: correctness is checked in simulators, speed is not measured")
    first = found[0]
    facts = [first.name]
    facts += [f"{first.memory_mib / 1024:.0f} GiB"] if first.memory_mib else []
    facts += [f"compute capability {first.compute_capability}"] if first.compute_capability else []
    facts += [f"driver {first.driver}"] if first.driver else []
    more = f"; the judge uses this one, the first of {len(found)} that CUDA shows" if len(found) > 1 else ""
    return Finding("GPU", True, ", ".join(facts) + more)


def judges_clock(found: tuple[Gpu, ...], torch: dict[str, Any]) -> Finding:
    """Whether judge and workers can share the GPU's memory. If not, a submission could deceive the clock."""
    name = "judge's clock"
    if not found or not torch.get("works"):
        return Finding(name, True, "none: nothing is timed without a GPU", needed=False)
    try:
        answer = subprocess.run(
            [sys.executable, "-c", _ASK_MEMORY], capture_output=True, text=True, timeout=180, check=False
        )
        memory, reason = json.loads(answer.stdout.splitlines()[-1])
    except (subprocess.TimeoutExpired, ValueError, IndexError):
        return Finding(
            name, False, "it could not be found out whether processes can share the GPU's memory", needed=False
        )
    if memory == "shared":
        return Finding(name, True, "trusted: judge and submission share the GPU's memory", needed=False)
    return Finding(name, False, f"{PRACTICE_CLOCK}, because {reason}", needed=False)


_ASK_MEMORY = """
import json, torch
from grader.judge.gpu.sharing import memory
torch.zeros(1, device="cuda")
print(json.dumps(memory("cuda")))
"""


def ask_torch(*, cuda: bool) -> dict[str, Any]:
    """Asks torch about itself in a separate process; `error` says why it cannot be imported or run."""
    code = _ASK_TORCH_CUDA if cuda else _ASK_TORCH
    try:
        answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=180, check=False)
    except subprocess.TimeoutExpired:
        return {"error": "importing it took more than three minutes"}
    if answer.returncode == 0:
        return dict(json.loads(answer.stdout.splitlines()[-1]))
    last = answer.stderr.strip().splitlines()[-1:] or [f"it ended with status {answer.returncode}"]
    return {"error": last[0]}


_ASK_TORCH = """
import json, torch
facts = {"version": torch.__version__, "cuda": torch.version.cuda, "works": False, "why": ""}
"""
_ASK_TORCH_CUDA = f"""{_ASK_TORCH}
try:
    facts["works"] = bool(torch.ones(2, device="cuda").sum().item() == 2)
except Exception as error:
    facts["why"] = str(error).splitlines()[0]
print(json.dumps(facts))
"""
_ASK_TORCH += "print(json.dumps(facts))\n"


def torch_runs(found: tuple[Gpu, ...], torch: dict[str, Any]) -> Finding:
    name = "torch on the GPU"
    if torch.get("error"):
        return Finding("torch runs", False, torch["error"], REINSTALL)
    if not found:
        return Finding("torch runs", True, "on the CPU")
    if torch["works"]:
        return Finding(name, True, f"works, built for CUDA {torch['cuda']}")
    if torch["cuda"] is None:
        return Finding(name, False, "this build of torch is for the CPU only", f"{REINSTALL} EXTRA={extra(found)}")
    if torch["cuda"].startswith("13") and extra(found) == "gpu-cu12":
        why = (
            f"CUDA {torch['cuda']} needs driver {CUDA_13_DRIVER} or newer and a card of compute capability 7.5 or newer"
        )
        return Finding(name, False, why, f"{REINSTALL} EXTRA=gpu-cu12")
    return Finding(name, False, torch["why"] or "torch does not find it", "nvidia-smi")


def cupy(found: tuple[Gpu, ...]) -> Finding:
    for distribution in ("cupy-cuda13x", "cupy-cuda12x", "cupy"):
        try:
            return Finding("CuPy", True, f"{importlib.metadata.version(distribution)} ({distribution})", needed=False)
        except importlib.metadata.PackageNotFoundError:
            continue
    if not found:
        return Finding("CuPy", True, "not installed; it needs a GPU", needed=False)
    return Finding("CuPy", False, "not installed", f"rm -f .venv/.lab && make lab EXTRA={extra(found)}", needed=False)


def cuda_compiler(found: tuple[Gpu, ...], torch: dict[str, Any]) -> Finding:
    name = "CUDA compiler"
    built_for = str(torch.get("cuda") or "")
    home = cuda_home(int(built_for.split(".")[0]) if built_for else None)
    if home is None:
        if not found:
            return Finding(name, True, "none; CUDA C++ runs on the CPU here", needed=False)
        if extra(found) == "gpu-cu12":
            return Finding(
                name, False, "no nvcc found, and pip has none for CUDA 12", "sudo apt-get install nvidia-cuda-toolkit"
            )
        return Finding(name, False, "no nvcc found", "rm -f .venv/.lab && make lab EXTRA=gpu")
    version = cuda_version(home)
    value = f"nvcc from CUDA {version or '?'} in {home}"
    if found and built_for and version.split(".")[0] != built_for.split(".")[0]:
        return Finding(
            name, False, f"{value}, but torch is built for CUDA {built_for}", "rm -f .venv/.lab && make lab EXTRA=gpu"
        )
    return Finding(name, True, value)


def simulated(found: tuple[Gpu, ...], torch: dict[str, Any]) -> Finding:
    if found and torch.get("works"):
        return Finding("simulated", True, "nothing")
    return Finding("simulated", True, "Triton in its interpreter, CUDA C++ on the CPU; speed gates need a GPU")


_PACKAGES = ("torch", "triton", "numba", "numba-cuda", "numpy", "jupyterlab", "nbgrader")


def examine() -> list[Finding]:
    """Runs every check. It takes a few seconds: torch is imported and a compiler run, in separate processes."""
    found = gpus()
    torch = ask_torch(cuda=bool(found))
    checks: Sequence[Callable[[], Finding]] = (
        python, partial(gpu, found), partial(torch_runs, found, torch), *(partial(package, name) for name in _PACKAGES),
        partial(cupy, found), compiler, python_headers, ninja, partial(cuda_compiler, found, torch), sandbox,
        partial(judges_clock, found, torch), partial(simulated, found, torch), folders, disk, chromium,
    )  # fmt: skip
    return [check() for check in checks]
