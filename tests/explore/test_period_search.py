"""A star's period is found, and the error of fast sines is measured."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from grader.exercises.numba_cupy.ladder_cases import eager, lombscargle
from grader.explore.ladder.period_search import (
    draw_folded,
    draw_power,
    draw_sampled,
    drift,
    fast_sine,
    load_light_curve,
    search_star,
)


def test_the_published_period_is_the_highest_peak():
    """It is within the width of the peak, from 0.1 to 1.5 cycles per day, and folding with it aligns the dips."""
    curve = load_light_curve()
    cycles = torch.arange(0.1, 1.5, 1e-4, dtype=torch.float64)
    power = lombscargle(torch.from_numpy(curve.t), torch.from_numpy(curve.y), 2 * np.pi * cycles)
    best = float(cycles[power.argmax()])
    assert abs(best - 1 / curve.published_days) < 0.5 / curve.t[-1]
    assert _scatter(curve, curve.published_days) < 0.85 * _scatter(curve, 1.013 * curve.published_days)


def _scatter(curve, period):
    order = np.argsort(curve.t / period % 1)
    return float(np.abs(np.diff(curve.y[order])).mean())


def test_the_data_are_those_that_their_source_names():
    """The number of rows, the span and the digits agree."""
    curve = load_light_curve()
    assert (curve.t.size, round(float(curve.t[-1]), 6)) == (1235, 2722.847778)
    assert abs(curve.y.mean()) < 1e-12
    assert (np.diff(curve.t) >= 0).all()


def test_the_pictures_say_what_they_show():
    """The alt texts have the number of measurements, the highest peak, the mark and the period."""
    curve = load_light_curve()
    assert "100 measurements" in draw_sampled(curve.t, curve.y, most=100).alt
    cycles = np.array([0.5, 1.0, 1.5])
    alt = draw_power(cycles, np.array([1.0, 9.0, 2.0]), mark=1.25).alt
    assert "1.0000" in alt
    assert "1.2500" in alt
    assert "1.87395 days" in draw_folded(curve.t, curve.y, 2 * curve.published_days).alt


def _nothing(t: Any, y: Any, freqs: Any, out: Any) -> None:
    raise NotImplementedError("not written yet")


def _flat(t: Any, y: Any, freqs: Any, out: Any) -> None:
    out.fill_(1.0)


def test_a_right_periodogram_finds_the_published_period() -> None:
    """It does so in float32, on uneven measurements over seven years."""
    star = search_star(eager)
    assert star.found
    assert "found" in repr(star)


def test_a_wrong_one_does_not() -> None:
    """A wrong or missing periodogram does not find it, and neither raises in the notebook."""
    assert not search_star(_flat).found
    assert repr(search_star(_nothing)).endswith("not written yet")
    assert "not every power" in repr(search_star(lambda t, y, freqs, out: None))


def test_the_fast_sines_error_grows_with_the_angle() -> None:
    """The number of turns is a float32: the larger the angle, the fewer digits are left for its fraction."""
    near, far = (np.linspace(low, low + 6, 500).astype(np.float32) for low in (0, 250))
    errors = [np.abs(fast_sine(x) - np.sin(x.astype(np.float64))).max() for x in (near, far)]
    assert errors[0] < 1e-6 < 5e-6 < errors[1] < 1e-4


def test_a_rotation_loses_less_than_a_recurrence() -> None:
    """Over 16 steps the recurrence loses about one digit more, over 256 steps more than one and a half."""
    assert drift(16)[-1] < 2e-6 < drift(16, recurrence=True)[-1]
    assert 50 * drift(256)[-1] < drift(256, recurrence=True)[-1]
