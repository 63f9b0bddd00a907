"""Values recorded on a GPU, as a table or as a plot."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.explore.drawing.displays import BLUE, DARK, GREY, ORANGE, Picture, Table, chart, finish
from grader.results import RESULTS, files

_UNIT_IN_NAME = re.compile(r"_(?:us|ms|s|gbps|tflops|percent|bytes|mib|ppb)$")
_WHOLE = 1e3  # from here on, print whole numbers without an exponent
_ROUNDED = 100.0  # from here on, a ratio's decimals, and what follows three digits, are noise
_TINY = 0.01  # below it, two decimals would be zeros
_LINES = ((BLUE, "o", "-"), (ORANGE, "s", "--"), ("#009E73", "^", "-."), ("#CC79A7", "D", ":"), (DARK, "v", "-"),
          ("#56B4E9", "P", "--"), (GREY, "X", "-."))  # fmt: skip
_PEERS = {"scipy": "SciPy's direct sums", "cublas": "cuBLAS"}
_CLOSE = 0.8  # if the smallest value is at least this share of the largest, dots on an axis from 0 look alike
_NONE = "No recorded result yet for {bench}. On a machine with a GPU, make bench measures and records it."


@dataclass(frozen=True, repr=False)
class Recorded(Table):
    """Rows of `benchmarks/results/*.json` for one benchmark; a table in a notebook."""

    bench: str
    metrics: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...]

    @property
    def origin(self) -> str:
        """The GPU and, if recorded, the dates."""
        if not self.rows:
            return _NONE.format(bench=self.bench)
        dates = " and ".join(sorted({str(row["date"]) for row in self.rows if row.get("date")}))
        date = f" on {dates}" if dates else ""
        return f"Recorded on one {self.rows[0]['gpu']}{date}. Not measured on this machine now."

    def value(self, metric: str, case: str) -> float | None:
        """The recorded value, or None."""
        found = (row["value"] for row in self.rows if row["metric"] == metric and row["case"] == case)
        return next(found, None)

    def plot(self, x: str = "", along: str = "", panel: str = "") -> Picture | Recorded:
        """Draw the first metric. Without rows, return this table, which says that there are none.

        Args:
            x: how the cases name the horizontal position, e.g. `"{} elements"`; the rest of the name is the line's. A
                case without it is a dashed line across. Without `x`, each case is a row with a dot and its interval.
            along: the title of the horizontal axis.
            panel: how the cases name the panel, e.g. `"block {}"`; without it, there is one panel.
        """
        if not self.rows:
            return self
        drawn = {str(row["case"]): row for row in self.rows if row["metric"] == self.metrics[0]}
        values = {case: float(row["value"]) for case, row in drawn.items()}
        title = _title(self.metrics[0], str(self.rows[0].get("unit", "")))
        if x:
            return _lines(values, title, self.origin, x, along, panel)
        ends = {case: (row.get("low"), row.get("high")) for case, row in drawn.items()}
        return _dots(values, {case: end for case, end in ends.items() if None not in end}, title, self.origin)

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


def _dots(values: Mapping[str, float], intervals: Mapping[str, Any], title: str, origin: str) -> Picture:
    """Draw a dot per case, with its interval. If the values are close, the axis does not start at 0, and says so."""
    figure, axes = chart(9.6, 0.8 + 0.27 * len(values))
    names = list(values)
    for case, ends in intervals.items():
        axes.plot(ends, [names.index(case)] * 2, "-|", color=DARK, linewidth=1.5, markersize=9)
    axes.plot(list(values.values()), range(len(names)), "o", color=BLUE, markersize=7)
    axes.set_yticks(range(len(names)), names, fontsize=9)
    drawn = [*values.values(), *(end for ends in intervals.values() for end in ends)]
    title += ", with 95 % intervals" if intervals else ""
    close = min(drawn) >= _CLOSE * max(drawn)
    if close:
        axes.margins(x=0.08)
        title += "; the axis does not start at 0"
    else:
        axes.set_xlim(0, 1.05 * max(1.0, *drawn))
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlabel(title)
    axes.grid(color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)
    said = "; ".join(
        f"{name}: {value:.4g}" if close else f"{name}: {_figures(value)}" for name, value in values.items()
    )
    return _with_origin(figure, f"{title}. {said}.", origin)


def _lines(values: Mapping[str, float], title: str, origin: str, x: str, along: str, panel: str) -> Picture:
    """Split each case into panel, line and position, and draw a line through its positions."""
    panels: dict[str, dict[str, dict[int, float]]] = {}
    across: dict[str, float] = {}
    for case, value in values.items():
        at, rest = _taken(x, case)
        if at is None:
            across[case] = value
            continue
        part, rest = _taken(panel, rest) if panel else (None, rest)
        name = "" if part is None else panel.format(f"{part:,}")
        panels.setdefault(name, {}).setdefault(rest or "the authors' kernel", {})[at] = value
    figure, axes = chart(9.6, 3.6)
    figure.delaxes(axes)
    styles = dict(zip(dict.fromkeys(line for lines in panels.values() for line in lines), _LINES, strict=False))
    top = 1.08 * max(values.values())
    for number, (name, lines) in enumerate(panels.items(), start=1):
        axes = figure.add_subplot(1, len(panels), number)
        axes.spines[["top", "right"]].set_visible(False)
        for line, points in lines.items():
            colour, marker, dashes = styles[line]
            axes.plot([*points], [*points.values()], color=colour, marker=marker, linestyle=dashes, label=line)
        for value in across.values():
            axes.axhline(value, color=GREY, linewidth=1.2, linestyle=(0, (6, 2)))
        ticks = sorted({at for points in lines.values() for at in points})
        axes.set_xscale("log", base=2)
        axes.set_xticks(ticks, [_tick(at) for at in ticks], fontsize=9)
        axes.minorticks_off()
        axes.set_ylim(0, top)
        axes.set_title(name, fontsize=11, color=DARK)
        axes.grid(color="#DDDDDD", linewidth=0.6)
        axes.tick_params(labelleft=number == 1)
    figure.supxlabel(along, fontsize=10)
    figure.axes[0].set_ylabel(title)
    fullest = max(figure.axes, key=lambda axes: len(axes.get_legend_handles_labels()[0]))
    handles, labels = fullest.get_legend_handles_labels()
    if across:
        from matplotlib.lines import Line2D

        handles.append(Line2D([], [], color=GREY, linewidth=1.2, linestyle=(0, (6, 2))))
        labels.append(", ".join(across))
    figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize=9.5)
    said = [f"{case}: {_figures(value)}" for case, value in values.items()]
    return _with_origin(figure, f"{title} over {along}. {'; '.join(said)}.", origin)


def _taken(template: str, text: str) -> tuple[int | None, str]:
    """Return the number at the template's `{}`, and the text without what the template matches."""
    before, after = map(re.escape, template.split("{}"))
    found = re.search(rf"(?:, )?{before}([\d,]*\d){after}(?:, )?", text)
    if found is None:
        return None, text
    rest = ", ".join(filter(None, (text[: found.start()], text[found.end() :])))
    return int(found[1].replace(",", "")), rest


def _tick(value: int) -> str:
    power = value.bit_length() - 1
    return f"$2^{{{power}}}$" if value == 1 << power and value >= 1 << 16 else f"{value:,}"


def _figures(value: float) -> str:
    return f"{value:,.0f}" if value >= _ROUNDED else f"{value:.3g}"


def _with_origin(figure: Any, alt: str, origin: str) -> Picture:
    import matplotlib

    figure.text(0.01, -0.02, origin, fontsize=9.5, color=DARK, va="top")
    with matplotlib.rc_context({"savefig.bbox": "tight"}):
        return finish(figure, f"{alt} {origin}", width=860)


def _number(metric: str, value: float | None) -> str:
    if value is None:
        return ""
    if metric.startswith(("ratio_vs_", "share_of_")):
        if value < _TINY:
            return f"{value:.2g}"
        return f"{value:,.2f}" if value < _ROUNDED else f"{float(f'{value:.3g}'):,.0f}"
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
