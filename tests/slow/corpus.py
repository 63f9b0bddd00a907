"""The corpus of right but slow submissions, each with the cause of its slowness.

`<exercise>/<name>.py` is the text of one solution cell. Its first lines are `# key: value`:

- `slow` (why), in words;
- `cause`: the kind of cause that an explanation names first or second (see `grader/bottleneck/`);
- `without_a_gpu`: `unnamed` if only a GPU tells it, or the compilation that tells it takes too long for a test;
- `blind`: `missed`, or left out; see below;
- `twin`: the same work with only this cause removed: a file of this corpus, or the exercise whose reference it is. If
  it is missing, the twin is the reference of the file's own exercise.

The rules were made on files of this corpus, so on 2026-11-28 another 61 were written before anyone looked at what the
rules say about them. Without a GPU, 35 were named first or second. 15 of the other 26 are here, marked `blind: missed`.
The rules were then changed, and named 53 of the 61.

On 2026-11-30, 53 more were written in the same way. Without a GPU, 22 were named; those that were missed are marked as
well. The rules were then changed, and named all 53. They named 18 of 20 that were written after that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["FOLDER", "HeaderError", "Slow", "corpus", "read"]

FOLDER = Path(__file__).parent
_LINE = re.compile(r"# (?P<key>slow|cause|without_a_gpu|blind|twin): (?P<value>\S.*)")


class HeaderError(ValueError):
    """A file of the corpus has an incomplete header."""


@dataclass(frozen=True)
class Slow:
    """One file. `twin` is the name of a file without the cause, or ""."""

    exercise: str
    name: str
    source: str
    about: str
    cause: str
    named: bool  # without a GPU
    twin: str


def corpus() -> list[Slow]:
    """Every file, by exercise and name. Raises HeaderError."""
    return [read(path) for path in sorted(FOLDER.glob("*/*.py")) if path.parent.name != "__pycache__"]


def read(path: Path) -> Slow:
    """One file. Raises HeaderError."""
    source = path.read_text(encoding="utf-8")
    header: dict[str, str] = {}
    for line in source.splitlines():
        if (found := _LINE.fullmatch(line)) is None:
            break
        header[found["key"]] = found["value"]
    if not {"slow", "cause"} <= header.keys():
        raise HeaderError(f"{path}: its header says why it is `slow`, and the `cause`.")
    if header.get("without_a_gpu", "unnamed") != "unnamed":
        raise HeaderError(f"{path}: `without_a_gpu` is unnamed, or is left out.")
    return Slow(
        exercise=path.parent.name,
        name=f"{path.parent.name}/{path.stem}",
        source=source,
        about=header["slow"],
        cause=header["cause"],
        named="without_a_gpu" not in header,
        twin=header.get("twin", ""),
    )
