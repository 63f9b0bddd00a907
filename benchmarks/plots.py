"""Plots bandwidth over size from recorded rows: one picture per exercise, readable in greyscale."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib

from grader.exercises import EXERCISES

matplotlib.use("Agg")
import matplotlib.pyplot as plt

_STYLES = (("o", "-"), ("s", "--"), ("^", "-."), ("D", ":"), ("v", (0, (1, 1))))
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#999999")  # Okabe and Ito


def plots(results: Path) -> list[Path]:
    """Write `<results>-<exercise>.png` for every exercise that has rows in the file."""
    rows = [row for row in json.loads(results.read_text()) if row["metric"] == "bandwidth_gbps"]
    written = []
    for exercise in EXERCISES.values():
        sizes = {case.name for case in exercise.plot_cases}
        if not any(row["bench"] == exercise.id and row["case"] in sizes for row in rows):
            continue
        figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
        peers = {"": "the reference solution"} | {b.id: b.label for b in exercise.baselines}
        peers |= {"copy": "copy"} if exercise.limited_by == "memory" else {}
        for (peer, label), (marker, line), colour in zip(peers.items(), _STYLES, _COLOURS, strict=False):
            bench = f"{exercise.id}/{peer}" if peer else exercise.id
            found = {row["case"]: row for row in rows if row["bench"] == bench}
            cases = [case for case in exercise.plot_cases if case.name in found]
            x = [exercise.plot_value(case) for case in cases]
            y = [exercise.rate(case, found[case.name]["value"]) for case in cases]
            axes.plot(x, y, marker=marker, linestyle=line, color=colour, label=label)
        axes.set(xlabel=exercise.plot_axis, ylabel=exercise.rate_unit, ylim=(0, None), title=exercise.title)
        axes.set_xscale("log", base=2)
        axes.grid(alpha=0.3)
        axes.legend()
        axes.text(1, 1.01, rows[0]["gpu"], transform=axes.transAxes, ha="right", va="bottom", fontsize="small")
        path = results.with_name(f"{results.stem}-{exercise.id}.png")
        figure.savefig(path, dpi=110)
        plt.close(figure)
        written.append(path)
    return written
