"""Recorded figures, one row each with its origin, in `benchmarks/results/<gpu>.json`.

`bench` names what was measured: `softmax` is the reference solution of that exercise, `softmax/torch` the same cases by
a peer. `ratio_vs_<peer>` is the peer's time over ours; `share_of_<limit>` our bandwidth over the limit's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.installation import RESULTS as RESULTS

_NEEDED = {"bench", "case", "metric", "value", "gpu"}


@dataclass(frozen=True)
class Row:
    """A measured figure; `low` and `high` bound its 95 % interval, or for seconds (`s`) the range."""

    bench: str
    case: str
    metric: str
    value: float
    unit: str
    low: float | None
    high: float | None
    gpu: str
    driver: str
    torch: str
    commit: str
    command: str
    date: str = ""


def files(folder: Path) -> Iterator[list[dict[str, Any]]]:
    """The rows of each results file. Files and rows that cannot be read are skipped, so that a notebook goes on."""
    for path in sorted(folder.glob("*.json")):
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(data, list):
            yield [row for row in data if isinstance(row, dict) and row.keys() >= _NEEDED]
