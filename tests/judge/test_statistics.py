"""Intervals that cover, and gates that doubt where the samples do not tell."""

import math
import random

import pytest

from grader.judge.statistics import Interval, decide, geometric_mean, interval


def test_the_interval_covers_the_true_mean_as_often_as_it_says():
    """Of 2000 samples of 7 log-normal times, 95 % of the intervals (give or take 1.5 points) hold the true value."""
    source = random.Random(7)
    hits = 0
    for _ in range(2000):
        found = interval([math.exp(source.gauss(1.0, 0.05)) for _ in range(7)])
        hits += found.low <= math.e <= found.high
    assert 0.935 <= hits / 2000 <= 0.965


def test_two_samples_are_enough_for_an_honest_wide_interval():
    """With one degree of freedom the interval is wide, and it is there."""
    found = interval([1.0, 1.1])
    assert found.low < 0.7
    assert found.high > 1.5


@pytest.mark.parametrize(("low", "high", "outcome"), [(1.2, 1.3, "passed"), (1.0, 1.19, "failed"), (1.1, 1.3, "doubt")])
def test_a_gate_passes_on_the_lower_bound_and_fails_on_the_upper(low, high, outcome):
    """Between the two there is doubt, and doubt is said."""
    assert decide(Interval((low + high) / 2, low, high), 1.2) == outcome


def test_the_geometric_mean_multiplies():
    """Twice as fast and half as fast is as fast."""
    assert geometric_mean([2.0, 0.5]) == pytest.approx(1.0)
