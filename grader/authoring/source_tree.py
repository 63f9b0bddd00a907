"""A reader of py:percent files without jupytext, for machines that have no Jupyter.

It reads the part of the format that the course uses; a test compares its cells with jupytext's. Commented magics
(`# %matplotlib inline`) stay commented, because graded cells have no magics.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from grader.errors import GraderError, MachineLacks

# The one error of this package.


class SourceError(GraderError):
    """A source notebook cannot be built, or a number in it cannot be found."""


# The folders of a source checkout.


@dataclass(frozen=True)
class Tree:
    """A checkout of the project, or a folder laid out like one."""

    root: Path

    @property
    def source(self) -> Path:
        return self.root / "source"

    @property
    def course(self) -> Path:
        return self.root / "course"

    @property
    def results(self) -> Path:
        return self.root / "benchmarks" / "results"

    def notebooks(self) -> list[Path]:
        """The source notebooks, sorted."""
        return [path for path in _files(self.source) if path.suffix == ".py"]

    def assets(self) -> list[Path]:
        """Every other file under `source/`; these are copied unchanged."""
        return [path for path in _files(self.source) if path.suffix != ".py"]

    def made(self) -> list[Path]:
        """The files that are in `course/` now."""
        return _files(self.course)


def _files(folder: Path) -> list[Path]:
    def shown(path: Path) -> bool:
        parts = path.relative_to(folder).parts
        return path.is_file() and not any(part.startswith(".") or part == "__pycache__" for part in parts)

    return sorted(path for path in folder.rglob("*") if shown(path))


def checkout(root: Path | None = None) -> Tree:
    """The checkout at `root`, or the one that this package runs from.

    Raises:
        MachineLacks: there is no `source/`: the package was installed without its checkout.
    """
    tree = Tree(Path(__file__).resolve().parents[2] if root is None else Path(root))
    if not tree.source.is_dir():
        raise MachineLacks(
            f"There is no source/ in {tree.root}: the source notebooks and their solutions are only in a checkout of "
            "the project. Clone it and install it with `pip install -e .`."
        )
    return tree


# The reader of py:percent files.

_HEADER = re.compile(r"^# ?%%(?:\s+(?P<options>.*?))?\s*$")
_KIND = re.compile(r"\[(markdown|md|raw)\]")
_KEY = re.compile(r"(?:^|\s)([A-Za-z_][\w-]*)=")


@dataclass(frozen=True)
class Cell:
    """One cell. `line` is the number of its header's line in the file, from 1."""

    kind: Literal["code", "markdown", "raw"]
    text: str
    metadata: dict[str, Any]
    line: int

    @property
    def nbgrader(self) -> dict[str, Any]:
        """The nbgrader metadata as the author wrote it; empty if there is none."""
        value = self.metadata.get("nbgrader", {})
        return value if isinstance(value, dict) else {}


def read(text: str, name: str = "the source") -> list[Cell]:
    """The cells of a py:percent file; text before the first `# %%` is left out.

    Raises:
        SourceError: a cell header cannot be read.
    """
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if _HEADER.match(line)]
    cells = []
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        kind, metadata = _options(lines[start], f"{name}:{start + 1}")
        body = lines[start + 1 : end]
        while body and not body[-1].strip():
            body.pop()
        if kind != "code":
            body = [_uncommented(line) for line in body]
        cells.append(Cell(kind, "\n".join(body), metadata, start + 1))
    return cells


def _options(header: str, where: str) -> tuple[Literal["code", "markdown", "raw"], dict[str, Any]]:
    match = _HEADER.match(header)
    options = (match and match["options"]) or ""
    first_key = _KEY.search(options)
    lead = options[: first_key.start()] if first_key else options
    kind: Literal["code", "markdown", "raw"] = "code"
    if found := _KIND.search(lead):
        kind = "raw" if found[1] == "raw" else "markdown"
    metadata: dict[str, Any] = {}
    rest = options[len(lead) :].strip()
    while rest:
        key = re.match(r"([A-Za-z_][\w-]*)=\s*", rest)
        if key is None:
            raise SourceError(f"{where}: this cell header cannot be read from {rest!r} on.")
        try:
            value, end = json.JSONDecoder().raw_decode(rest, key.end())
        except json.JSONDecodeError as error:
            raise SourceError(f"{where}: the value of `{key[1]}` in this header is not JSON: {error.msg}.") from None
        metadata[key[1]] = value
        rest = rest[end:].strip()
    return kind, metadata


def _uncommented(line: str) -> str:
    if line.startswith("# "):
        return line[2:]
    return line[1:] if line.startswith("#") else line
