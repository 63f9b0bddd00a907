"""Python and the packages that the course stands on."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from typing import Any

from grader.doctor.finding import Finding

__all__ = ["REINSTALL", "package", "python"]

REINSTALL = "make clean && make lab"


def python() -> Finding:
    supported = (3, 11) <= sys.version_info[:2] < (3, 15)
    mend = "" if supported else "make clean && make lab PYTHON=python3.12"
    return Finding("Python", supported, f"{platform.python_version()} ({sys.executable})", mend)


def package(name: str) -> Finding:
    """Whether it is installed, in a version that this project says it works with."""
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return Finding(name, False, "not installed", "make lab")
    wanted = _wanted(name)
    if wanted is not None and not wanted.contains(version, prereleases=True):
        return Finding(name, False, f"{version}, and the course works with {wanted}", REINSTALL)
    return Finding(name, True, version)


def _wanted(name: str) -> Any:
    """What this project's metadata asks of a package, as packaging's SpecifierSet; None where that is not known."""
    try:
        from packaging.requirements import Requirement

        requirements = map(Requirement, importlib.metadata.requires("grader") or [])
    except (ImportError, importlib.metadata.PackageNotFoundError):
        return None
    return next((each.specifier for each in requirements if each.name == name and each.marker is None), None)
