"""A bench's time limit, and the state from which an interrupted bench continues."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any


class Fault(SystemExit):
    """A figure is outside its limits, or something was left behind. The rows are written nevertheless."""


class Limit:
    """A time limit from now on: `BENCH_LIMIT_S` if it is set, otherwise `seconds`."""

    def __init__(self, seconds: float) -> None:
        self.seconds = float(os.environ.get("BENCH_LIMIT_S") or seconds)
        self._ends = time.monotonic() + self.seconds

    def left(self) -> float:
        """Return the seconds that are left."""
        return self._ends - time.monotonic()

    def allows(self, seconds: float) -> bool:
        """Whether this many seconds are left."""
        return seconds < self.left()


def folder(name: str) -> Path:
    """Return the folder of a bench's state under `BENCH_STATE`, by default `build/bench`; create it if necessary."""
    path = Path(os.environ.get("BENCH_STATE") or "build/bench", name).absolute()
    path.mkdir(parents=True, exist_ok=True)
    return path


def keep(path: Path, row: dict[str, Any]) -> None:
    """Append a row to a file of JSON lines, and flush it to disk."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row, ensure_ascii=False) + "\n")
        file.flush()
        os.fsync(file.fileno())


def kept(path: Path) -> list[dict[str, Any]]:
    """Return the rows so far, without a last one that was cut off."""
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue
    return rows
