"""A plot of speed over size as an inline SVG in the theme's colours, and as a table; readable without colour."""

from __future__ import annotations

import html
import io
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.exercise import Exercise
from grader.feedback.report import code, css
from grader.results import RESULTS, files
from grader.verdict import Timing
from grader.words import count

# The speed over size of a submission and its peers, measured here by the judge or recorded elsewhere.

_INTERVAL = ("value", "low", "high")


@dataclass(frozen=True)
class Point:
    """The rate at one size, in the exercise's unit, with its 95 % interval."""

    size: int
    rate: float
    low: float
    high: float


@dataclass(frozen=True)
class Series:
    """One line of the plot. With `limit` it is the measured copy bandwidth instead of a peer."""

    label: str
    points: tuple[Point, ...]
    limit: bool = False


@dataclass(frozen=True)
class Speeds:
    """The lines of a plot; `origin` says where and when they were measured."""

    exercise: Exercise
    series: tuple[Series, ...]
    origin: str


def measured(exercise: Exercise, timings: Sequence[Timing], gpu: str = "") -> Speeds:
    """The judge's timings of the plot cases, with the copy bandwidth that the shares of the roofline refer to."""
    labels = {"submission": f"your {exercise.entry}"} | {each.id: each.label for each in exercise.baselines}
    cases = {case.name: case for case in exercise.plot_cases}
    sizes = {name: exercise.plot_value(case) for name, case in cases.items()}
    series = []
    for peer, label in labels.items():
        points = [
            Point(sizes[t.case], rate, rate * t.median_us / t.high_us, rate * t.median_us / t.low_us)
            for t in timings if t.peer == peer and t.case in sizes
            for rate in [exercise.rate(cases[t.case], t.bandwidth_gbps)]
        ]  # fmt: skip
        if points:
            series.append(Series(label, tuple(sorted(points, key=lambda point: point.size))))
    copies = [timing.bandwidth_gbps / timing.share_of_roofline for timing in timings if timing.share_of_roofline]
    if copies and series and exercise.limited_by == "memory":
        copy = sum(copies) / len(copies)
        ends = (series[0].points[0].size, series[0].points[-1].size)
        line = tuple(Point(size, copy, copy, copy) for size in ends)
        series.append(Series("measured copy bandwidth", line, limit=True))
    return Speeds(exercise, tuple(series), f"Measured now{f' on {gpu}' if gpu else ''}; 95 % intervals.")


def recorded(exercise: Exercise, folder: Path | None = None) -> Speeds | None:
    """The newest results of the exercise, with the course's solution instead of the learner's; None without any."""
    newest: tuple[str, list[dict[str, Any]]] = ("", [])
    for rows in files(folder or RESULTS):
        mine = [row for row in rows if row["metric"] == "bandwidth_gbps" and row["bench"].split("/")[0] == exercise.id]
        date = max((str(row.get("date", "")) for row in mine), default="")
        if mine and (date > newest[0] or not newest[1]):
            newest = (date, mine)
    date, rows = newest
    if not rows:
        return None
    labels = {exercise.id: f"the course's {exercise.entry}"}
    labels |= {f"{exercise.id}/{each.id}": each.label for each in exercise.baselines}
    if exercise.limited_by == "memory":
        labels[f"{exercise.id}/copy"] = "measured copy bandwidth"
    cases = {case.name: case for case in exercise.plot_cases}
    sizes = {name: exercise.plot_value(case) for name, case in cases.items()}
    series = []
    for bench, label in labels.items():
        points = [
            Point(sizes[row["case"]], *(exercise.rate(cases[row["case"]], _number(row, key)) for key in _INTERVAL))
            for row in rows if row["bench"] == bench and row["case"] in sizes
        ]  # fmt: skip
        if points:
            ordered = tuple(sorted(points, key=lambda point: point.size))
            series.append(Series(label, ordered, limit=bench.endswith("/copy")))
    gpu = str(rows[0].get("gpu", "")) or "an unnamed GPU"
    when = f" on {date[:10]}" if date else ""
    how = f" by `{rows[0]['command']}`" if rows[0].get("command") else ""
    return Speeds(exercise, tuple(series), f"Recorded on one {gpu}{when}{how}, not measured here.")


def _number(row: dict[str, Any], key: str) -> float:
    value = row.get(key)
    return float(row["value"] if value is None else value)


_INK, _GRID = "#010203", "#040506"  # stand-ins, replaced by the theme's colours once the SVG is written
_STYLES = (("#D55E00", "s", "--"), ("#0072B2", "^", "-."), ("#009E73", "D", ":"), ("#CC79A7", "v", (0, (3, 1, 1, 1))))


def as_html(speeds: Speeds) -> str:
    """The plot with its numbers folded below."""
    title, unit = html.escape(speeds.exercise.title), speeds.exercise.rate_unit
    return (
        f'<style>{css()}</style><section class="gr-report" aria-label="Speed of {title}">'
        f'<div class="gr-part" style="border-top:0"><figure style="margin:0">{_svg(speeds)}'
        f"<figcaption>{code(speeds.origin)}</figcaption></figure>"
        f'<details><summary>The numbers, in {unit}</summary><div class="gr-scroll">{_table(speeds)}</div></details>'
        "</div></section>"
    )


def as_text(speeds: Speeds) -> str:
    """The numbers as a table."""
    heads = [speeds.exercise.plot_axis, *(series.label for series in speeds.series)]
    rows = _rows(speeds)
    widths = [max(len(line[column]) for line in [heads, *rows]) for column in range(len(heads))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in [heads, *rows]]
    head = f"{speeds.exercise.title}: {speeds.exercise.rate_unit}"
    return "\n".join([head, *lines, textwrap.fill(speeds.origin, 100)]) + "\n"


def alt_text(speeds: Speeds) -> str:
    """The plot in words."""
    what = "bandwidth" if speeds.exercise.limited_by == "memory" else "speed"
    said = [f"Plot of {what} in {speeds.exercise.rate_unit} over {speeds.exercise.plot_axis}."]
    for series in speeds.series:
        first, last = series.points[0], series.points[-1]
        best = max(series.points, key=lambda point: point.rate)
        said.append(
            f"{series.label}: {first.rate:,.0f} at {count(first.size)}, {last.rate:,.0f} at {count(last.size)}, "
            f"at most {best.rate:,.0f}."
            if not series.limit
            else f"{series.label}: {best.rate:,.0f} at most."
        )
    return " ".join(said)


def _svg(speeds: Speeds) -> str:
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"svg.fonttype": "none", "font.family": "sans-serif", "font.size": 10}):
        figure = Figure(figsize=(7, 3.9), layout="constrained")
        axes = figure.subplots()
        peers = iter(_STYLES * 2)
        lines = [
            _draw(axes, series, None if series.limit or number == 0 else next(peers))
            for number, series in enumerate(speeds.series)
        ]
        axes.set_xscale("log", base=2)
        axes.set_ylim(bottom=0)
        axes.set_xlabel(speeds.exercise.plot_axis, color=_INK)
        axes.set_ylabel(speeds.exercise.rate_unit, color=_INK)
        axes.tick_params(colors=_INK)
        axes.grid(color=_GRID, linewidth=0.6)
        axes.set_axisbelow(True)
        for name, spine in axes.spines.items():
            spine.set_visible(name in ("left", "bottom"))
            spine.set_color(_INK)
        look = {"frameon": False, "labelcolor": _INK, "handlelength": 3.2}
        legend = figure.legend(handles=lines, loc="outside upper left", ncols=3, **look)
        if legend.get_window_extent().width > figure.bbox.width:
            legend.remove()
            figure.legend(handles=lines, loc="outside upper left", ncols=2, **look)
        text = io.StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    return _themed(text.getvalue(), alt_text(speeds))


def _draw(axes: Any, series: Series, style: tuple[str, str, object] | None) -> Any:
    x = [point.size for point in series.points]
    y = [point.rate for point in series.points]
    if series.limit:
        return axes.plot(x, y, color=_INK, linewidth=1, linestyle=(0, (1, 2)), label=series.label)[0]
    colour, marker, line = style or (_INK, "o", "-")
    errors = [
        [max(0.0, point.rate - point.low) for point in series.points],
        [max(0.0, point.high - point.rate) for point in series.points],
    ]
    return axes.errorbar(
        x, y, yerr=errors, color=colour, marker=marker, linestyle=line, markersize=5, capsize=2.5, elinewidth=1,
        linewidth=2.2 if style is None else 1.5, label=series.label, zorder=3 if style is None else 2,
    )  # fmt: skip


def _themed(svg: str, alt: str) -> str:
    """The SVG element alone, in the theme's colours and font, with a text for readers who cannot see it."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = svg.replace(_INK, "currentColor").replace(_GRID, "var(--gr-edge, #d1d9e0)")
    svg = re.sub(r"font: ([^;\"]*?)'[^;\"]*", r"font: \1inherit", svg)
    opening = f'<svg class="gr-svg" role="img" aria-label="{html.escape(alt)}"'
    return re.sub(r"<svg\b", lambda _: opening, svg, count=1)


def _rows(speeds: Speeds) -> list[list[str]]:
    values = [{point.size: point for point in series.points} for series in speeds.series]
    sizes = sorted({size for series in values for size in series})
    return [[count(size), *(_cell(series, size) for series in values)] for size in sizes]


def _cell(series: dict[int, Point], size: int) -> str:
    return f"{series[size].rate:,.0f}" if size in series else ""


def _table(speeds: Speeds) -> str:
    heads = [speeds.exercise.plot_axis, *(series.label for series in speeds.series)]
    head = "".join(f'<th scope="col">{html.escape(each)}</th>' for each in heads)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in _rows(speeds))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
