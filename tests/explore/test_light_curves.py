"""The star's light curve: its data are whole, its period can be found, and the pictures say what they show."""

import numpy as np
import torch

from grader.exercises.ladder import lombscargle
from grader.explore.light_curves import draw_folded, draw_power, draw_sampled, load_light_curve


def test_the_published_period_is_the_highest_peak():
    """To within the width of the peak, from 0.1 to 1.5 cycles a day; and folding it draws the dips together."""
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
    """Rows, span and digits."""
    curve = load_light_curve()
    assert (curve.t.size, round(float(curve.t[-1]), 6)) == (1235, 2722.847778)
    assert abs(curve.y.mean()) < 1e-12
    assert (np.diff(curve.t) >= 0).all()


def test_the_pictures_say_what_they_show():
    """How many measurements, the highest peak and the mark, the period."""
    curve = load_light_curve()
    assert "100 measurements" in draw_sampled(curve.t, curve.y, most=100).alt
    cycles = np.array([0.5, 1.0, 1.5])
    alt = draw_power(cycles, np.array([1.0, 9.0, 2.0]), mark=1.25).alt
    assert "1.0000" in alt
    assert "1.2500" in alt
    assert "1.87395 days" in draw_folded(curve.t, curve.y, 2 * curve.published_days).alt
