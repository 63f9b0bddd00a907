"""The corpus of mistakes: submissions with one typical mistake each, and correct work in other styles.

`<exercise>/<name>.py` is the text of one solution cell. Its first lines are `# key: value`:

- `mistake` (what is wrong) or `right` (its style);
- `says`: text of the report that names the bug, only for a mistake; `#     ` continues a line;
- `on_gpu`: the text on a GPU, where it differs;
- `notes`: text of the report's notes on correct work, if it has any without a GPU;
- `runs`: anywhere; `gpu` if a simulator cannot show it, such as slow code; `simulator` if a race decides the result on
  a GPU.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

__all__ = ["FOLDER", "HeaderError", "Submission", "corpus", "read"]

FOLDER = Path(__file__).parent
_LINE = re.compile(r"# (?P<key>mistake|right|says|on_gpu|notes|runs): (?P<value>\S.*)")
_CONTINUED = "#     "


class HeaderError(ValueError):
    """A file of the corpus has an incomplete header."""


@dataclass(frozen=True)
class Submission:
    """One file. `says` is empty if the work is correct."""

    exercise: str
    name: str
    source: str
    about: str
    says: str
    on_gpu: str
    notes: str
    runs: Literal["anywhere", "gpu", "simulator"]

    @property
    def right(self) -> bool:
        return not self.says


def corpus() -> list[Submission]:
    """Every file, by exercise and name. Raises HeaderError."""
    return [read(path) for path in sorted(FOLDER.glob("*/*.py")) if path.parent.name != "__pycache__"]


def read(path: Path) -> Submission:
    """One file. Raises HeaderError."""
    source = path.read_text(encoding="utf-8")
    header: dict[str, str] = {}
    key = ""
    for line in source.splitlines():
        if found := _LINE.fullmatch(line):
            key = found["key"]
            header[key] = found["value"]
        elif key and line.startswith(_CONTINUED):
            header[key] += " " + line.removeprefix(_CONTINUED)
        else:
            break
    about = header.get("mistake") or header.get("right")
    if not about or ("mistake" in header) == ("right" in header) or ("mistake" in header) != ("says" in header):
        raise HeaderError(f"{path}: its header says `right`, or `mistake` and what the report `says`.")
    runs = header.get("runs")
    if runs not in ("anywhere", "gpu", "simulator"):
        raise HeaderError(f"{path}: `runs` is anywhere, gpu or simulator.")
    return Submission(
        exercise=path.parent.name,
        name=f"{path.parent.name}/{path.stem}",
        source=source,
        about=about,
        says=header.get("says", ""),
        on_gpu=header.get("on_gpu") or header.get("says", ""),
        notes=header.get("notes", ""),
        runs=runs,
    )
