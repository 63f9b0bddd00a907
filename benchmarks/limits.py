"""How long a bench may take, and where it keeps what it has so far: a bench that was cut off goes on there."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

__all__ = ["Fault", "Limit", "folder", "keep", "kept"]


class Fault(SystemExit):
    """A figure is not what is needed, or something was left behind; the rows are written all the same."""


class Limit:
    """A time limit that runs from now on: `BENCH_LIMIT_S` where it is set, else `seconds`."""

    def __init__(self, seconds: float) -> None:
        self.seconds = float(os.environ.get("BENCH_LIMIT_S") or seconds)
        self._ends = time.monotonic() + self.seconds

    def left(self) -> float:
        """Seconds."""
        return self._ends - time.monotonic()

    def allows(self, seconds: float) -> bool:
        """Whether something that takes so long still fits."""
        return seconds < self.left()


def folder(name: str) -> Path:
    """The folder of a bench's state, made where there is none: under `BENCH_STATE`, by default `build/bench`."""
    path = Path(os.environ.get("BENCH_STATE") or "build/bench", name).absolute()
    path.mkdir(parents=True, exist_ok=True)
    return path


def keep(path: Path, row: dict[str, Any]) -> None:
    """Adds a row to a file of JSON lines, and has it on the disk."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row, ensure_ascii=False) + "\n")
        file.flush()
        os.fsync(file.fileno())


def kept(path: Path) -> list[dict[str, Any]]:
    """The rows so far; a last one that was cut off in the middle is left out."""
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue
    return rows
