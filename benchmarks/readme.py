"""The README's figures: one table per GPU, made from recorded rows. `make bench` rewrites them, and a test compares."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

README = Path(__file__).parents[1] / "README.md"
_END = "<!-- end of figures -->"


@dataclass(frozen=True)
class Line:
    """One line of a table. `what` may name the row's `{case}`; `pick` chooses among several `cases`, by size.

    Without `cases`, all rows of the bench with this metric are candidates.
    """

    what: str
    bench: str
    metric: str
    cases: tuple[str, ...] = ()
    pick: Callable[..., dict[str, Any]] = min

    def row(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the row to show.

        Raises:
            KeyError: a row is missing.
        """
        found = {row["case"]: row for row in rows if (row["bench"], row["metric"]) == (self.bench, self.metric)}
        if not found:
            raise KeyError(self.bench, self.metric)
        return self.pick([found[case] for case in self.cases or found], key=lambda row: abs(row["value"]))


_LONG_ROWS = tuple(f"4096 × {n}" for n in (4096, 8192, 16384, 32768))
_LONG_KERNELS = ("100", "220", "470", "1000", "2200", "4700", "10000", "22000", "50000")  # µs

# By the stem of the results file. The H200 measured the course's kernels, the H100 the judge.
TABLES = {
    "nvidia-h200": (
        Line("copy of 512 MiB, device to device", "copy", "bandwidth_gbps"),
        Line(
            "`softmax` against `torch.softmax`, 4096 rows, {case}",
            "softmax", "ratio_vs_torch", ("geometric mean of 7 sizes",),
        ),
        Line("… against eager PyTorch, N ≥ 4096, lowest", "softmax", "ratio_vs_eager", _LONG_ROWS),
        Line("… share of the copy's bandwidth, N ≥ 8192, lowest", "softmax", "share_of_large_copy", _LONG_ROWS[1:]),
        Line(
            "`vector_add`, {case}, share of the copy's bandwidth",
            "vector_add", "share_of_large_copy", ("33,554,432 elements",),
        ),
        Line("`square_matrix` against PyTorch, {case}", "square_matrix", "ratio_vs_torch", ("8192 × 8192",)),
        Line("`load_inline` build, {case}", "load_inline", "build_s", ("default headers",)),
        Line("… {case}", "load_inline", "build_s", ("no torch headers, called by ctypes",)),
    ),
    "nvidia-h100-80gb-hbm3": (
        Line("`check(vector_add)`, {case} session", "check/vector_add", "seconds", ("warm",)),
        Line(
            "judge's clock against CUDA events, from 100 µs, largest difference",
            "clock/agreement", "arbiter_vs_events", tuple(f"{us} µs" for us in _LONG_KERNELS), max,
        ),
        Line("12 gradings of the same work, largest coefficient of variation", "clock/repeats", "cv_of_12", pick=max),
        Line("{case} of submissions 3 % apart, ranked correctly", "clock/pairs", "ranked_right"),
        Line("{case}, share with different points", "flips", "flip_rate"),
        Line("notebooks graded per minute, {case}", "throughput/ours", "per_minute"),
        Line("… by nbgrader alone, {case}", "throughput/stock", "per_minute"),
    ),
}  # fmt: skip


def section(results: Path) -> str:
    """Return the table of one results file.

    Raises:
        KeyError: there is no table for this GPU, or a row is missing.
    """
    rows = json.loads(results.read_text(encoding="utf-8"))
    shown = [(line, line.row(rows)) for line in TABLES[results.stem]]
    machine = shown[0][1]
    versions = " and ".join(sorted({row["torch"] for _, row in shown}))
    file = results.relative_to(README.parent)
    lines = [
        f"[{machine['gpu']}]({file}), driver {machine['driver']}, torch {versions}",
        "",
        "| what | measured | version |",
        "| --- | --- | --- |",
        *(
            f"| {line.what.format(case=row['case'])} | {_figure(row)} | {row['commit'][:7]} |"
            for line, row in shown
        ),
    ]  # fmt: skip
    return "\n".join(lines)


def _figure(row: dict[str, Any]) -> str:
    value, metric, unit = row["value"], row["metric"], row["unit"]
    if metric.startswith("ratio_vs_"):
        return f"{value:.2f}×"
    if metric.startswith("share_of_"):
        return f"{100 * value:.0f} %"
    if unit == "%" or metric.endswith("_rate"):
        return f"{abs(value) * (1 if unit == '%' else 100):.2g} %"
    if unit == "s":
        return f"{value:.1f} s"
    digits = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return digits if unit in ("1", "1/min") else f"{digits} {unit}"


def rewrite(results: Path) -> None:
    """Write the GPU's table into the README, if the README has one for this GPU.

    Raises:
        KeyError: a row is missing.
    """
    if results.stem not in TABLES:
        return
    table = section(results)
    start = f"<!-- figures of {results.stem}: written by `make bench` -->"
    text = README.read_text(encoding="utf-8")
    pattern = re.compile(f"{re.escape(start)}.*?{re.escape(_END)}", flags=re.DOTALL)
    README.write_text(pattern.sub(lambda _: f"{start}\n\n{table}\n\n{_END}", text), encoding="utf-8")
