"""`grader doctor`: what this machine can do, what will be simulated, and the one command that mends each lack."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from grader.doctor import gpu, packages, system
from grader.doctor.finding import Finding, as_text, healthy, to_dicts
from grader.doctor.system import find_chromium
from grader.hardware import gpus

__all__ = ["Finding", "as_text", "examine", "find_chromium", "healthy", "to_dicts"]

_PACKAGES = ("torch", "triton", "numba", "numba-cuda", "numpy", "jupyterlab", "nbgrader")


def examine() -> list[Finding]:
    """Looks at everything; takes some seconds, since it imports torch and runs a compiler in processes of their own."""
    found = gpus()
    torch = gpu.ask_torch(cuda=bool(found))
    checks: Sequence[Callable[[], Finding]] = (
        packages.python,
        partial(gpu.gpu, found),
        partial(gpu.torch_runs, found, torch),
        *(partial(packages.package, name) for name in _PACKAGES),
        partial(gpu.cupy, found),
        system.compiler,
        system.python_headers,
        system.ninja,
        partial(gpu.cuda_compiler, found, torch),
        system.sandbox,
        partial(gpu.simulated, found, torch),
        system.folders,
        system.disk,
        system.chromium,
    )
    return [check() for check in checks]
