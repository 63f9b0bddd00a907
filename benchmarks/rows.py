"""The rows of one run, each written to `benchmarks/results/<gpu>.json` as soon as it is measured."""

from __future__ import annotations

import fcntl
import functools
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.results import RESULTS, Row

if TYPE_CHECKING:
    from grader.judge.gpu.ceilings import Machine


@functools.cache
def commit() -> str:
    """Return the measured commit, with a `+` if the tree has changes. Without git, `COMMIT` names it."""
    if named := os.environ.get("COMMIT"):
        return named
    try:
        ask = functools.partial(subprocess.run, capture_output=True, text=True, check=True, cwd=RESULTS.parents[1])
        results = f":!{RESULTS.relative_to(RESULTS.parents[1])}"  # new rows do not count as a change
        changed = ask(["git", "status", "--porcelain", "--untracked-files=no", "--", ".", results]).stdout
        return ask(["git", "rev-parse", "--short", "HEAD"]).stdout.strip() + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


def file_stem(gpu: str) -> str:
    """Return the name of a GPU's files, without the ending: "nvidia-h200"."""
    return gpu.lower().replace(" ", "-")


@dataclass
class Recorder:
    """Collects the rows of one run on one machine."""

    machine: Machine
    date: str
    rows: list[Row] = field(default_factory=list)

    def add(self, bench: str, case: str, metric: str, unit: str, value: float, low: float | None = None,
            high: float | None = None) -> None:  # fmt: skip
        row = Row(
            bench=bench,
            case=case,
            metric=metric,
            value=_rounded(value),
            unit=unit,
            low=None if low is None else _rounded(low),
            high=None if high is None else _rounded(high),
            gpu=self.machine.gpu,
            driver=self.machine.driver,
            torch=self.machine.torch,
            commit=commit(),
            command=f"make bench ARGS='{' '.join(sys.argv[1:])}'" if sys.argv[1:] else "make bench",
            date=self.date,
        )
        self.rows.append(row)
        spread = "" if low is None or high is None else f"  [{low:.4g}, {high:.4g}]"
        print(f"{bench:24} {case:28} {metric:24} {value:10.4g} {unit}{spread}", flush=True)
        self.write()  # now, because the bench may fail later

    def path(self) -> Path:
        """Return this GPU's file."""
        return RESULTS / f"{file_stem(self.machine.gpu)}.json"

    def write(self) -> Path:
        """Replace the rows of the benches that ran; rows of other benches stay."""
        replace_rows(self.path(), [asdict(row) for row in self.rows], "bench")
        return self.path()


def _rounded(value: float) -> float:
    """Round to five decimals; below 0.001, to three significant digits."""
    return float(f"{value:.3g}") if 0 < abs(value) < 1e-3 else round(value, 5)


def replace_rows(path: Path, rows: Sequence[dict[str, Any]], key: str) -> None:
    """Replace the rows with the same `key`, one row per line.

    Readers never see half a file, even if this process is killed. Processes that write into one folder take turns.
    """
    path.parent.mkdir(exist_ok=True)
    lock = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        mine = {row[key] for row in rows}
        kept = [row for row in json.loads(path.read_text()) if row[key] not in mine] if path.exists() else []
        lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in [*kept, *rows])
        fresh = path.with_suffix(".part")
        fresh.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
        os.replace(fresh, path)
    finally:
        os.close(lock)
