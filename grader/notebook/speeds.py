"""The rate over size of a submission and its peers: as the judge measured it here, or as it was recorded elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.exercise import Exercise
from grader.results import RESULTS, files
from grader.verdict import Timing

__all__ = ["Point", "Series", "Speeds", "measured", "recorded"]


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
    """One line of the plot. `limit`: not a peer but the measured copy bandwidth."""

    label: str
    points: tuple[Point, ...]
    limit: bool = False


@dataclass(frozen=True)
class Speeds:
    """What is drawn; `origin` says where and when it was measured."""

    exercise: Exercise
    series: tuple[Series, ...]
    origin: str


def measured(exercise: Exercise, timings: Sequence[Timing], gpu: str = "") -> Speeds:
    """The judge's timings over the plot cases; the copy bandwidth is what the shares of the roofline refer to."""
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
    """The newest results of the exercise, the course's own solution in the learner's place; None without any."""
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
