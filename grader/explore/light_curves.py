"""A star that dims now and then, measured at uneven times: the series, its periodogram, and the folded curve."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from grader.explore.picture import BLUE, DARK, GREY, ORANGE, Picture, finish

__all__ = ["LightCurve", "draw_folded", "draw_power", "draw_sampled", "load_light_curve"]

_FILE = Path(__file__).with_name("data") / "macho_1.3444.614_blue.csv"
PUBLISHED_DAYS = 0.93697446  # of the tutorial that the file is from: half the time that the stars need for a turn


@dataclass(frozen=True)
class LightCurve:
    """Times in days since the first, and magnitudes less their mean. Both are NumPy arrays in float64."""

    name: str
    t: Any
    y: Any
    published_days: float

    def __repr__(self) -> str:
        return f"{self.name}: {self.t.size:,} measurements in {self.t[-1]:,.0f} days"


def load_light_curve() -> LightCurve:
    """The star MACHO 1.3444.614. Where the data come from stands in the README beside them."""
    import numpy as np

    days, magnitude, _ = np.loadtxt(_FILE, delimiter=",", skiprows=1, unpack=True)
    return LightCurve("MACHO 1.3444.614, blue", days - days[0], magnitude - magnitude.mean(), PUBLISHED_DAYS)


def draw_sampled(t: Any, y: Any, unit: str = "days", most: int = 300) -> Picture:
    """The first `most` measurements, as points: no line joins them, since nobody looked in between."""
    axes, figure = _axes()
    axes.plot(t[:most], y[:most], "o", color=BLUE, markersize=3)
    axes.invert_yaxis()
    axes.set_xlabel(f"time ({unit})")
    axes.set_ylabel("magnitude less its mean (up is brighter)")
    gaps = float(max(later - earlier for earlier, later in pairwise(t[:most])))
    alt = (
        f"{min(most, len(t))} measurements over {float(t[:most][-1]):.0f} {unit}, as points. They crowd and leave gaps "
        f"of up to {gaps:.0f} {unit}."
    )
    return finish(figure, alt)


def draw_power(cycles: Any, power: Any, title: str = "power", mark: float | None = None) -> Picture:
    """Power over frequency in cycles a day. `mark` is a frequency to be pointed at."""
    axes, figure = _axes()
    axes.plot(cycles, power, color=DARK, linewidth=0.7)
    axes.set_xlabel("frequency (cycles a day)")
    axes.set_ylabel(title)
    top = float(cycles[int(power.argmax())])
    band = f"{float(cycles[0]):.2g} to {float(cycles[-1]):.2g}"
    alt = f"{title} over {band} cycles a day. The highest peak is at {top:.4f}."
    if mark is not None:
        axes.axvline(mark, color=ORANGE, linestyle="--", linewidth=1.6)
        axes.annotate(f"{mark:.4f}", (mark, float(power.max())), (6, -4), textcoords="offset points", va="top")
        alt += f" A dashed line marks {mark:.4f}."
    return finish(figure, alt)


def draw_folded(t: Any, y: Any, period: float) -> Picture:
    """All measurements over their phase in this period, drawn twice side by side."""
    axes, figure = _axes()
    phase = t / period % 1
    for shift, colour in ((0, BLUE), (1, GREY)):
        axes.plot(phase + shift, y, "o", color=colour, markersize=2, alpha=0.6)
    axes.invert_yaxis()
    axes.set_xlabel(f"phase in a period of {period:.5f} days (grey: the same once more)")
    axes.set_ylabel("magnitude less its mean")
    alt = f"{len(t):,} measurements over their phase in a period of {period:.5f} days, and the same once more beside."
    return finish(figure, alt)


def _axes() -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return axes, figure
