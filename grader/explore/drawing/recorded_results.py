"""Values recorded on a GPU, as a table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.explore.drawing.displays import Table
from grader.results import RESULTS, files

_UNIT_IN_NAME = re.compile(r"_(?:us|ms|s|gbps|tflops|percent|bytes|mib|ppb)$")
_WHOLE = 1e3  # from here on, print whole numbers without an exponent
_ROUNDED = 100.0  # from here on, a ratio's decimals are noise
_PEERS = {"scipy": "SciPy's direct sums"}
_NONE = "No recorded result yet for {bench}. On a machine with a GPU, make bench measures and records it."


@dataclass(frozen=True, repr=False)
class Recorded(Table):
    """Rows of `benchmarks/results/*.json` for one benchmark; a table in a notebook."""

    bench: str
    metrics: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...]

    @property
    def origin(self) -> str:
        """The GPU and, if recorded, the date."""
        if not self.rows:
            return _NONE.format(bench=self.bench)
        row = self.rows[0]
        date = f" on {row['date']}" if row.get("date") else ""
        return f"Recorded on one {row['gpu']}{date}. Not measured on this machine now."

    def value(self, metric: str, case: str) -> float | None:
        """The recorded value, or None."""
        found = (row["value"] for row in self.rows if row["metric"] == metric and row["case"] == case)
        return next(found, None)

    def _table(self) -> list[list[str]]:
        units = {row["metric"]: row.get("unit", "") for row in self.rows}
        head = ["case", *(_title(metric, str(units.get(metric, ""))) for metric in self.metrics)]
        cases = list(dict.fromkeys(row["case"] for row in self.rows))
        body = ([case, *(_number(metric, self.value(metric, case)) for metric in self.metrics)] for case in cases)
        return [head, *body]

    def _note(self) -> str:
        return self.origin


def recorded(bench: str, *metrics: str, folder: Path | None = None) -> Recorded:
    """Return the recorded values of `metrics` for a benchmark, on the most recently measured GPU.

    Args:
        bench: the name in the results' `bench`, e.g. an exercise's id.
        metrics: e.g. `"ratio_vs_torch"`; a metric without rows stays empty.
        folder: the folder of results; by default that of the checkout this package runs from.
    """
    found: tuple[Mapping[str, Any], ...] = ()
    for file in files(RESULTS if folder is None else folder):
        rows = tuple(row for row in file if row["bench"] == bench and row["metric"] in metrics)
        if rows and (not found or _date(rows) > _date(found)):
            found = rows
    return Recorded(bench, metrics, found)


def _date(rows: tuple[Mapping[str, Any], ...]) -> str:
    return max(str(row.get("date", "")) for row in rows)


def _number(metric: str, value: float | None) -> str:
    if value is None:
        return ""
    if metric.startswith(("ratio_vs_", "share_of_")):
        return f"{value:,.2f}" if value < _ROUNDED else f"{value:,.0f}"
    if metric == "correct_digits":
        return f"{value:.1f}"
    return f"{value:,.0f}" if abs(value) >= _WHOLE else f"{value:,.4g}"


def _title(metric: str, unit: str) -> str:
    if metric == "build_s":
        return "seconds to build"
    for prefix, words in (("ratio_vs_", "times as fast as "), ("share_of_", "share of ")):
        if metric.startswith(prefix):
            peer = metric.removeprefix(prefix)
            return words + _PEERS.get(peer, peer.replace("_", " "))
    words = _UNIT_IN_NAME.sub("", metric).replace("_", " ") if unit not in ("", "1") else metric.replace("_", " ")
    return f"{words} ({unit})" if unit not in ("", "1") else words
