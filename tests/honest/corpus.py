"""The corpus of honest work: right submissions in the styles that learners write, each with a header of its own.

Every file under `submissions/` is the whole text of one solution cell. Its first lines are `# key: value`:
`honest` (what is special about its style), `exercise`, `runs` (gpu or anywhere), `gates` (passes, or may miss: whether
it is fast enough), and `needs`, where it imports what a machine may lack.
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
    """A file of the corpus lacks a line of its header, or has one that nobody knows."""


@dataclass(frozen=True)
class Honest:
    """One file. `name` is its path under `submissions/`; `needs` are modules that it imports without asking."""

    name: str
    source: str
    style: str
    exercise: str
    runs: Literal["gpu", "anywhere"]
    fast: bool
    needs: tuple[str, ...]

    @property
    def lacks(self) -> str:
        """The first module of `needs` that cannot be imported on this machine, or ""."""
        return next((name for name in self.needs if not _importable(name)), "")


def corpus() -> list[Honest]:
    """Every file, by name.

    Raises:
        HeaderError: a file's header is not complete.
    """
    return [read(path) for path in sorted(SUBMISSIONS.rglob("*.py"))]


def read(path: Path) -> Honest:
    """One file; its line ends stay as they are. Raises HeaderError."""
    source = path.read_bytes().decode("utf-8")
    header: dict[str, str] = {}
    for line in source.splitlines():
        match = _LINE.fullmatch(line)
        if match is None:
            break
        if match["key"] not in (*_REQUIRED, *_OPTIONAL) or match["key"] in header:
            raise HeaderError(f"{path.name}: its header has a line {match['key']!r} that is not known, or twice.")
        header[match["key"]] = match["value"].strip()
    for key, values in _REQUIRED.items():
        if key not in header:
            raise HeaderError(f"{path.name}: its header lacks the line {key!r}.")
        if values and header[key] not in values:
            raise HeaderError(f"{path.name}: {key} is {header[key]!r}; say {' or '.join(values)}.")
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
def _importable(module: str) -> bool:
    """In a process of its own: some packages fail in the middle of their import, and leave half of it behind."""
    asked = subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, check=False)
    return asked.returncode == 0
