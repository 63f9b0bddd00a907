"""The corpus of honest work: right submissions in the styles that learners write, each with a header.

Every file under `submissions/` is the whole text of one solution cell. Its first lines are `# key: value`. The keys are
`honest` (its style), `exercise`, `runs` (gpu or anywhere), `gates` (passes or may miss: whether it is fast enough).
`needs` lists modules, or names in them, that may be missing. The results of `benchmarks/flips.py` belong to a file's
exact text.
"""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

__all__ = ["SUBMISSIONS", "HeaderError", "Honest", "corpus", "read"]

SUBMISSIONS = Path(__file__).parent / "submissions"
_REQUIRED = {"honest": None, "exercise": None, "runs": ("gpu", "anywhere"), "gates": ("passes", "may miss")}
_OPTIONAL = ("needs",)
_LINE = re.compile(r"# (?P<key>[a-z]+): (?P<value>\S.*)")


class HeaderError(ValueError):
    """A file's header has a missing or unknown line."""


@dataclass(frozen=True)
class Honest:
    """One file. `name` is its path under `submissions/`; `needs` are the modules and names that it imports."""

    name: str
    source: str
    style: str
    exercise: str
    runs: Literal["gpu", "anywhere"]
    fast: bool
    needs: tuple[str, ...]

    @property
    def lacks(self) -> str:
        """The first of `needs` that cannot be imported on this machine, or ""."""
        return next((name for name in self.needs if not _importable(name)), "")


def corpus() -> list[Honest]:
    """Every file, by name. Raises HeaderError."""
    return [read(path) for path in sorted(SUBMISSIONS.rglob("*.py"))]


def read(path: Path) -> Honest:
    """One file, with its line ends unchanged. Raises HeaderError."""
    source = path.read_bytes().decode("utf-8")
    header: dict[str, str] = {}
    for line in source.splitlines():
        match = _LINE.fullmatch(line)
        if match is None:
            break
        if match["key"] not in (*_REQUIRED, *_OPTIONAL) or match["key"] in header:
            raise HeaderError(f"{path.name}: its header line {match['key']!r} is unknown or repeated.")
        header[match["key"]] = match["value"].strip()
    for key, values in _REQUIRED.items():
        if key not in header:
            raise HeaderError(f"{path.name}: add `# {key}:` to its header.")
        if values and header[key] not in values:
            raise HeaderError(f"{path.name}: `# {key}:` is {header[key]!r}; write {' or '.join(values)}.")
    return Honest(
        name=f"{path.parent.name}/{path.name}",
        source=source,
        style=header["honest"],
        exercise=header["exercise"],
        runs="gpu" if header["runs"] == "gpu" else "anywhere",
        fast=header["gates"] == "passes",
        needs=tuple(header.get("needs", "").replace(",", " ").split()),
    )


@functools.cache
def _importable(name: str) -> bool:
    """Import it in a new process: some packages fail in the middle and leave half of themselves imported.

    Triton keeps the name of what it removed as a function that only says so.
    """
    code = (
        f"import inspect, pkgutil\nfound = pkgutil.resolve_name({name!r})\n"
        "assert not (inspect.isfunction(found) and 'have been removed' in inspect.getsource(found))"
    )
    asked = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    return asked.returncode == 0
