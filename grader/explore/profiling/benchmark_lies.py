"""Benchmarks that lie: what each one claims, the question that catches it, and drawings of the waits."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grader.explore.drawing.displays import (
    BLUE,
    DARK,
    GREY,
    ORANGE,
    PALE,
    Picture,
    Table,
    canvas,
    finish,
    rectangle,
    write,
)
from grader.worker.harnesses.benchmark_machine import PretendGpu, ThisMachine

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["QUESTIONS", "ClaimTable", "PretendGpu", "ThisMachine", "draw_claims", "draw_waits", "show_lies"]


# By lie: the question to ask of a benchmark, and the probe that answers it.
QUESTIONS: dict[str, tuple[str, str]] = {
    "no sync": ("Has the GPU done its work when the clock is read?", "known times"),
    "hot data": ("Has anybody touched the data just before?", "diary: addresses"),
    "cached result": ("Does the kernel run in each call that is timed?", "known times"),
    "shrunken input": ("Does the kernel get all of the data?", "diary: shapes"),
    "other stream": ("Does the clock watch the stream that the work is on?", "known times"),
    "lower precision": ("Do both compute in the same type?", "diary: types and values"),
    "constant data": ("Are the data like those in real use?", "diary: values"),
    "slowed baseline": ("Does the baseline get the same chance?", "known times, a slow first call"),
    "dead code": ("Does anybody look at the results?", "a kernel that does nothing"),
}
_PRETENDED = "on the pretend GPU"


@dataclass(frozen=True, repr=False)
class ClaimTable(Table):
    """Per lie: its claim for a kernel no faster than the baseline, the question that catches it, the probe."""

    rows: tuple[tuple[str, str, str, str], ...]

    _left = 4

    def _table(self) -> list[tuple[str, ...]]:
        return [("lie", "claims", "the question that catches it", "the probe"), *self.rows]


def show_lies(claims: Mapping[str, float], pretended: Collection[str] = ()) -> ClaimTable:
    """Return a table of the nine lies: the claim, where it was tried, and the question and the probe that catch it.

    Args:
        claims: lie -> claimed speed-up; a missing lie was not tried.
        pretended: the lies that were tried on the pretend GPU.
    """
    rows = []
    for lie, (question, probe) in QUESTIONS.items():
        said = _times(claims[lie]) if lie in claims else "not tried yet"
        where = f", {_PRETENDED}" if lie in claims and lie in pretended else ""
        rows.append((lie, said + where, question, probe))
    return ClaimTable(tuple(rows))


def draw_claims(claims: Mapping[str, float], pretended: Collection[str] = ()) -> Picture:
    """Draw one point per lie on a logarithmic axis, hollow if it was tried on the pretend GPU.

    Args:
        claims: lie -> claimed speed-up.
        pretended: the lies that were tried on the pretend GPU.

    Raises:
        ValueError: there are no claims.
    """
    if not claims:
        raise ValueError("There are no claims to draw yet: run the cells of the nine lies first.")
    from matplotlib.figure import Figure

    height = 0.42 * len(claims) + 0.8
    figure = Figure(figsize=(7.6, height))
    axes = figure.add_axes((0.2, 0.6 / height, 0.74, 1 - 0.65 / height))
    for row, (lie, claim) in enumerate(claims.items()):
        at = max(claim, 1e-3)
        fill = "white" if lie in pretended else BLUE
        axes.plot([1, at], [row, row], color=BLUE, linewidth=1, zorder=1)
        axes.plot(at, row, "o", markersize=9, markerfacecolor=fill, markeredgecolor=BLUE, markeredgewidth=1.4, zorder=2)
        write(axes, max(at, 1.0) * 1.25, row, _times(claim), 11, "left")
    axes.axvline(1, color=DARK, linewidth=1.5)
    axes.set_xscale("log")
    axes.set_xlim(min(0.5, 0.8 * min(claims.values())), 10 * max(*claims.values(), 10))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_yticks(range(len(claims)), list(claims), fontsize=11)
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    hollow = f"; hollow: {_PRETENDED}" if any(lie in pretended for lie in claims) else ""
    axes.set_xlabel(f"claimed speed-up of a kernel that is no faster (1 is honest{hollow})", fontsize=10, color=DARK)
    told = "; ".join(f"{lie} {_times(claim)}" for lie, claim in claims.items())
    return finish(figure, f"Claimed speed-ups of kernels that are no faster, as points: {told}. An honest claim is 1.")


def draw_waits() -> Picture:
    """Draw host, streams and clock readings: a sound benchmark, one without a wait, one on another stream."""
    figure, axes = canvas(7.4, 4.9, (-2.6, 10.2), (10.7, -0.6))
    rows: tuple[str, ...] = ("host", "kernel's stream")
    _scene(axes, 0, "sound: the clock is read when the kernel has ended", rows, stop=8.4, wait=8.3)
    _scene(axes, 3.6, "no sync: the clock is read after the launch", rows, stop=2.0)
    rows = ("host", "events' stream", "kernel's stream")
    _scene(axes, 7.2, "other stream: both events are in a stream without work", rows, stop=2.4, wait=8.3)
    return finish(
        figure,
        "Three timelines of a host and a kernel. Sound: the clock is read when the kernel has ended. No sync: it is "
        "read right after the launch, while the kernel runs. Other stream: the two events are close together in a "
        "stream with no work, while the kernel runs on another; the host waits for both streams.",
    )


def _scene(axes: Axes, top: float, title: str, rows: tuple[str, ...], stop: float, wait: float | None = None) -> None:
    """Draw the host's launch and wait in the first row, the kernel in the last, and the clock readings."""
    write(axes, -2.5, top - 0.25, title, 11.5, "left", weight="bold")
    for row, name in enumerate(rows):
        write(axes, -0.2, top + 0.75 + row, name, 10.5, "right")
        axes.plot([0, 10], [top + 1.15 + row] * 2, color=GREY, linewidth=0.8)
    _bar(axes, 0.6, 1.8, top + 0.35, "launch", ORANGE)
    if wait is not None:
        _bar(axes, 1.9 if len(rows) == 2 else 2.6, wait, top + 0.35, "wait", "white", hatch="....")
    _bar(axes, 1.5, 8.2, top + 0.35 + len(rows) - 1, "kernel", PALE)
    events = len(rows) == 3  # with a row of their own, the events are drawn there
    for at, name in ((0.45, "start"), (stop, "stop")):
        axes.plot([at, at], [top + (1.25 if events else 0.2), top + 2.1], color=DARK, linewidth=2, linestyle="--")
        where = (at + 0.15, top + 1.7) if events else (at, top + 2.4)
        axes.text(*where, name, fontsize=10.5, color=DARK, ha="left" if events else "center", va="center")


def _bar(axes: Axes, left: float, right: float, top: float, name: str, fill: str, hatch: str | None = None) -> None:
    rectangle(axes, (left, top), right - left, 0.75, facecolor=fill, edgecolor=DARK, hatch=hatch, linewidth=1)
    behind = {"facecolor": "white", "edgecolor": "none", "pad": 1} if hatch else None
    middle = (left + right) / 2
    write(axes, middle, top + 0.4, name, 10.5, bbox=behind)


def _times(claim: float) -> str:
    return f"{claim:,.0f}×" if claim >= 100 else f"{claim:.1f}×" if claim >= 10 else f"{claim:.2f}×"
