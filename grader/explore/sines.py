"""What a sine costs in digits: the GPU's fast one over the angle, and one that is rotated step by step."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from grader.explore.picture import BLUE, DARK, ORANGE, Picture, finish

__all__ = ["draw_drift", "draw_fast_sine", "drift", "fast_sine"]

_TURNS_PER_RADIAN = np.float32(0.15915494)
_OWN_ERROR = 2.0**-21.4  # of MUFU.SIN, by NVIDIA's programming guide: the absolute error within half a turn
_ANGLES = 300
_REPEATS = 2000  # angles that are rotated


def fast_sine(x: Any) -> Any:
    """The sine of float32 angles with the range reduction of the GPU's fast sine: turns are counted in float32."""
    turns = x.astype(np.float32) * _TURNS_PER_RADIAN
    return np.sin(2 * np.pi * (turns.astype(np.float64) - np.round(turns)))


def drift(steps: int, recurrence: bool = False) -> Any:
    """The largest error of float32 sines and cosines after 0, 1, 2, … `steps` rotations by small angles.

    `recurrence`: from the two steps before, c(k + 1) = 2 cos(d) c(k) - c(k - 1), in place of an angle addition.
    """
    source = np.random.default_rng(1)
    start, by = source.uniform(0, 2 * np.pi, _REPEATS), source.uniform(0.001, 0.03, _REPEATS)
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
    """The error of the fast sine against the angle, and that of float32 angles themselves."""
    figure, axes = _axes("angle, radians", "largest error")
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


def draw_drift(steps: int = 256) -> Picture:
    """What is lost by rotating instead of calling sine and cosine, step by step."""
    figure, axes = _axes("steps from the last sine and cosine", "largest error")
    rotated, recurred = drift(steps), drift(steps, recurrence=True)
    x = np.arange(1, steps + 1)
    axes.plot(x, recurred[1:], color=ORANGE, linewidth=2.2, linestyle="--", label="from the two steps before")
    axes.plot(x, rotated[1:], color=BLUE, linewidth=2.2, label="rotated")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.legend(frameon=False, fontsize=10, loc="upper left")
    alt = (
        f"The error of a rotated sine grows slowly with the steps, to {rotated[-1]:.0e} after {steps}. "
        f"From the two steps before it grows much faster, to {recurred[-1]:.0e}."
    )
    return finish(figure, alt)


def _axes(x: str, y: str) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.4, 3.6), layout="constrained")
    axes = figure.add_subplot()
    axes.set_xlabel(x, color=DARK)
    axes.set_ylabel(y, color=DARK)
    axes.grid(True, which="major", alpha=0.3)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure, axes
