"""The README's figures, taken from recorded rows: `make bench` rewrites the section, a test holds it to the rows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

__all__ = ["README", "rewrite", "section"]

README = Path(__file__).parents[1] / "README.md"
_MARKS = ("<!-- figures: written by `make bench` -->", "<!-- end of figures -->")


class _Rows:
    def __init__(self, path: Path) -> None:
        rows = json.loads(path.read_text(encoding="utf-8"))
        self.found: dict[tuple[str, str, str], dict[str, Any]] = {
            (row["bench"], row["case"], row["metric"]): row for row in rows
        }

    def text(self, bench: str, case: str, metric: str) -> str:
        row = self.found[bench, case, metric]
        if metric.startswith("ratio_vs_"):
            return f"{row['value']:.2f}×"
        if metric.startswith("share_of_"):
            return f"{100 * row['value']:.0f} %"
        return f"{row['value']:.1f} {row['unit']}"

    def least(self, bench: str, metric: str, sizes: tuple[str, ...]) -> str:
        return self.text(bench, min(sizes, key=lambda case: self.found[bench, case, metric]["value"]), metric)


def section(results: Path) -> str:
    """The section between the marks, for one results file."""
    rows = _Rows(results)
    copy = rows.found["copy", "512 MiB, device to device", "bandwidth_gbps"]
    long = tuple(f"4096 × {n}" for n in (4096, 8192, 16384, 32768))
    mean = "geometric mean of 7 sizes"
    file = results.relative_to(README.parent)
    against_torch = rows.text("softmax", mean, "ratio_vs_torch")
    against_eager = rows.least("softmax", "ratio_vs_eager", long)
    of_copy = rows.least("softmax", "share_of_large_copy", long[1:])
    added = rows.text("vector_add", "33,554,432 elements", "share_of_large_copy")
    squared = rows.text("square_matrix", "8192 × 8192", "ratio_vs_torch")
    check = {name: rows.text(f"check/{name}", "warm", "seconds") for name in ("softmax", "square_matrix", "vector_add")}
    default = rows.text("load_inline", "default headers", "build_s")
    lines = [
        f"One {copy['gpu']}, driver {copy['driver']}, torch {copy['torch']}. A copy of 512 MiB moves "
        f"{copy['value']:,.0f} GB/s there. All by `make bench`; the rows, with intervals, dates and commits, are in "
        f"[`{file}`]({file}).",
        "",
        "| what | measured |",
        "| --- | --- |",
        f"| `softmax` against `torch.softmax` (4096 rows, float32, {mean} from 256 to 32768) | {against_torch} |",
        f"| … against the same operations one by one in PyTorch, N ≥ 4096 | at least {against_eager} |",
        f"| … share of that copy's bandwidth, N ≥ 8192 | at least {of_copy} |",
        f"| `vector_add`, 2²⁵ elements, share of that copy's bandwidth | {added} |",
        f"| `square_matrix`, 8192 × 8192, against torch | {squared} |",
        f"| from an edit to its report: `check(softmax)` in a warm session, timing included | {check['softmax']} |",
        f"| … `check(vector_add)` | {check['vector_add']} |",
        f"| … `check(square_matrix)`, its build by `load_inline` included | {check['square_matrix']} |",
        f"| a `load_inline` build with torch's default headers, for comparison | {default} |",
        "",
        f"![Bandwidth of softmax over the length of a row.]({file.with_name(results.stem)}-softmax.png)",
    ]
    return "\n".join(lines)


def rewrite(results: Path) -> None:
    """Puts the section into the README."""
    start, end = _MARKS
    text = README.read_text(encoding="utf-8")
    pattern = re.compile(f"{re.escape(start)}.*{re.escape(end)}", flags=re.DOTALL)
    README.write_text(pattern.sub(lambda _: f"{start}\n\n{section(results)}\n\n{end}", text), encoding="utf-8")
