"""A star's light curve and its period, and the errors of the sines that a periodogram uses."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from grader.explore.drawing.displays import BLUE, DARK, GREY, ORANGE, Picture, chart, finish

_FILE = Path(__file__).with_name("data") / "macho_1.3444.614_blue.csv"
_BINS = 40  # of a folded light curve's median
PUBLISHED_DAYS = 0.93697446  # from the tutorial that the file is from: half of the stars' orbital period


@dataclass(frozen=True)
class LightCurve:
    """Times in days since the first, and magnitudes minus their mean. Both are NumPy arrays in float64."""

    name: str
    t: Any
    y: Any
    published_days: float

    def __repr__(self) -> str:
        return f"{self.name}: {self.t.size:,} measurements in {self.t[-1]:,.0f} days"


def load_light_curve() -> LightCurve:
    """Load the star MACHO 1.3444.614. See `data/README.md` for the source of the data."""
    days, magnitude, _ = np.loadtxt(_FILE, delimiter=",", skiprows=1, unpack=True)
    return LightCurve("MACHO 1.3444.614, blue", days - days[0], magnitude - magnitude.mean(), PUBLISHED_DAYS)


def draw_sampled(t: Any, y: Any, most: int = 300) -> Picture:
    """Draw the first `most` measurements as points, without a line between them."""
    figure, axes = chart(9, 3.4)
    axes.plot(t[:most], y[:most], "o", color=BLUE, markersize=3)
    axes.invert_yaxis()
    axes.set_xlabel("time (days)")
    axes.set_ylabel("magnitude minus its mean (up is brighter)")
    gaps = float(max(later - earlier for earlier, later in pairwise(t[:most])))
    alt = (
        f"{min(most, len(t))} measurements over {float(t[:most][-1]):.0f} days, as points. They come in clusters, "
        f"with gaps of up to {gaps:.0f} days."
    )
    return finish(figure, alt)


def draw_power(cycles: Any, power: Any, title: str = "power", mark: float | None = None) -> Picture:
    """Draw power over frequency in cycles per day. `mark` is a frequency to highlight."""
    figure, axes = chart(9, 3.4)
    axes.plot(cycles, power, color=DARK, linewidth=0.7)
    axes.set_xlabel("frequency (cycles per day)")
    axes.set_ylabel(title)
    top = float(cycles[int(power.argmax())])
    band = f"{float(cycles[0]):.2g} to {float(cycles[-1]):.2g}"
    alt = f"{title} over {band} cycles per day. The highest peak is at {top:.4f}."
    if mark is not None:
        axes.axvline(mark, color=ORANGE, linestyle="--", linewidth=1.6)
        axes.annotate(f"{mark:.4f}", (mark, float(power.max())), (6, -4), textcoords="offset points", va="top")
        alt += f" A dashed line marks {mark:.4f}."
    return finish(figure, alt)


def draw_folded(t: Any, y: Any, period: float) -> Picture:
    """Draw the measurements over their phase in this period, twice side by side, with their median.

    The axis leaves out the most extreme measurements, 1 in 100, which would flatten the curve.
    """
    figure, axes = chart(9, 3.4)
    phase = t / period % 1
    bins = np.minimum((phase * _BINS).astype(int), _BINS - 1)
    medians = [float(np.median(y[bins == each])) if (bins == each).any() else math.nan for each in range(_BINS)]
    for shift, colour in ((0, BLUE), (1, GREY)):
        axes.plot(phase + shift, y, "o", color=colour, markersize=2, alpha=0.6)
    axes.plot((np.arange(2 * _BINS) + 0.5) / _BINS, medians * 2, color=DARK, linewidth=1.8)
    faint, bright = np.quantile(y, (0.995, 0.005))
    axes.set_ylim(faint + 0.05, bright - 0.05)  # brighter, a smaller magnitude, is up
    axes.set_xlabel(f"phase in a period of {period:.5f} days (grey: repeated)")
    axes.set_ylabel("magnitude minus its mean")
    alt = (
        f"{len(t):,} measurements over their phase in a period of {period:.5f} days, drawn twice side by side. Their "
        f"median varies by {np.nanmax(medians) - np.nanmin(medians):.2f} magnitudes."
    )
    return finish(figure, alt)


_LOWEST, _SPACING, _COUNT = 5.0, 2.0**-11, 1 << 13  # radians per day: exact in float32, five per peak width


@dataclass(frozen=True)
class StarPeriod:
    """The period at the highest peak and the published one, in days; None if the function found none."""

    name: str
    days: float | None
    published_days: float
    note: str = ""

    @property
    def found(self) -> bool:
        """Whether it matches the published period within 0.1 %."""
        return self.days is not None and abs(self.days / self.published_days - 1) < 1e-3

    def __repr__(self) -> str:
        if self.days is None:
            return f"{self.name}: {self.note}"
        ending = "found" if self.found else "not the same"
        return f"{self.name}: {self.days:.5f} days; published: {self.published_days:.5f} days ({ending})"


def search_star(periodogram: Callable[..., None]) -> StarPeriod:
    """Call `periodogram(t, y, freqs, out)` on the star's measurements in float32, on the GPU if there is one.

    Times count from the middle of the series: smaller phases have smaller float32 errors.
    """
    import torch

    from grader.worker.arrays import call

    star = load_light_curve()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    t, y = (torch.tensor(values, dtype=torch.float32, device=device) for values in (star.t - star.t[-1] / 2, star.y))
    freqs = _LOWEST + _SPACING * torch.arange(_COUNT, dtype=torch.float32, device=device)
    out = torch.full_like(freqs, math.nan)
    try:
        call(periodogram, t, y, freqs, out)
    except NotImplementedError:
        return StarPeriod(star.name, None, star.published_days, "not written yet")
    except Exception as raised:  # the learner's; its own cell and report say more
        return StarPeriod(star.name, None, star.published_days, f"raises {type(raised).__name__}")
    if not bool(out.isfinite().all()):
        return StarPeriod(star.name, None, star.published_days, "not every power is a number")
    best: Any = freqs[out.argmax()]
    return StarPeriod(star.name, 2 * math.pi / float(best), star.published_days)


_TURNS_PER_RADIAN = np.float32(0.15915494)
_OWN_ERROR = 2.0**-21.4  # the absolute error of MUFU.SIN within half a turn, from NVIDIA's programming guide
_ANGLES = 300
_ROTATED = 2000  # the number of angles that are rotated


def fast_sine(x: Any) -> Any:
    """Return the sine of float32 angles with the GPU's fast range reduction, which counts turns in float32."""
    turns = x.astype(np.float32) * _TURNS_PER_RADIAN
    return np.sin(2 * np.pi * (turns.astype(np.float64) - np.round(turns)))


def drift(steps: int, recurrence: bool = False) -> Any:
    """Return the largest errors of float32 sines and cosines after 0 to `steps` small rotations: (steps + 1,).

    With `recurrence` they come from the two steps before, c(k + 1) = 2 cos(d) c(k) - c(k - 1), not from angle addition.
    """
    source = np.random.default_rng(1)
    start, by = source.uniform(0, 2 * np.pi, _ROTATED), source.uniform(0.001, 0.03, _ROTATED)
    single = np.float32
    c, s = np.cos(start).astype(single), np.sin(start).astype(single)
    turn_c, turn_s = np.cos(by).astype(single), np.sin(by).astype(single)
    before_c, before_s = np.cos(start - by).astype(single), np.sin(start - by).astype(single)
    errors = [0.0]
    for step in range(1, steps + 1):
        if recurrence:
            c, s, before_c, before_s = 2 * turn_c * c - before_c, 2 * turn_c * s - before_s, c, s
        else:
            c, s = c * turn_c - s * turn_s, s * turn_c + c * turn_s
        exact = start + step * by
        errors.append(float(max(np.abs(c - np.cos(exact)).max(), np.abs(s - np.sin(exact)).max())))
    return np.array(errors)


def draw_fast_sine() -> Picture:
    """Draw the error of the fast sine over the angle, and that of rounding the angle to float32."""
    figure, axes = _axes("angle, radians")
    edges = np.linspace(0, _ANGLES, 61)
    source = np.random.default_rng(0)
    fast, angle = [], []
    for low, high in itertools.pairwise(edges):
        x = source.uniform(low, high, 4000)
        rounded = x.astype(np.float32)
        fast.append(np.abs(fast_sine(rounded) - np.sin(rounded.astype(np.float64))).max() + _OWN_ERROR)
        angle.append(np.abs(np.sin(rounded.astype(np.float64)) - np.sin(x)).max())
    axes.plot(edges[1:], fast, color=BLUE, linewidth=2.2, label="the fast sine of a float32 angle")
    axes.plot(edges[1:], angle, color=ORANGE, linewidth=2.2, linestyle="--", label="the angle, rounded to float32")
    axes.set_yscale("log")
    axes.legend(frameon=False, fontsize=10, loc="lower right")
    alt = (
        f"The error of the fast sine grows with the angle, from less than one in a million near 0 to {max(fast):.0e} "
        f"near {_ANGLES} radians. Rounding the angle to float32 costs about as much, {max(angle):.0e} there."
    )
    return finish(figure, alt)


def draw_drift() -> Picture:
    """Draw the error of rotating instead of calling sine and cosine, over the number of steps."""
    figure, axes = _axes("steps from the last sine and cosine")
    rotated, recurred = drift(256), drift(256, recurrence=True)
    x = np.arange(1, len(rotated))
    axes.plot(x, recurred[1:], color=ORANGE, linewidth=2.2, linestyle="--", label="from the two steps before")
    axes.plot(x, rotated[1:], color=BLUE, linewidth=2.2, label="rotated")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.legend(frameon=False, fontsize=10, loc="upper left")
    alt = (
        f"The error of a rotated sine grows slowly with the steps, to {rotated[-1]:.0e} after 256. "
        f"From the two steps before it grows much faster, to {recurred[-1]:.0e}."
    )
    return finish(figure, alt)


def _axes(x: str) -> tuple[Any, Any]:
    figure, axes = chart(7.4, 3.6)
    axes.set_xlabel(x, color=DARK)
    axes.set_ylabel("largest error", color=DARK)
    axes.grid(True, which="major", alpha=0.3)
    return figure, axes
