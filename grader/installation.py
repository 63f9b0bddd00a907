"""Where the notebooks and the recorded figures are: in a checkout, or inside the installed package."""

from __future__ import annotations

from pathlib import Path

DISTRIBUTION = "gpu-course"  # the name that pip knows; the package that it installs is `grader`
_PACKAGE = Path(__file__).resolve().parent

CHECKOUT = _PACKAGE.parent if (_PACKAGE.parent / "pyproject.toml").is_file() else None
_BASE = CHECKOUT or _PACKAGE / "installed"  # setup.py copies both folders there

COURSE = _BASE / "course"
RESULTS = _BASE / "benchmarks" / "results"
WORK = CHECKOUT / "work" if CHECKOUT else Path.home() / "gpu-course-work"  # a learner's folder, if none is named
