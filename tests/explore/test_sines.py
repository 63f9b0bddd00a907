"""What is told of fast and of rotated sines is computed, and is so."""

from __future__ import annotations

import numpy as np

from grader.explore.sines import drift, fast_sine


def test_the_fast_sines_error_grows_with_the_angle() -> None:
    """Its turns are a float32: the larger the angle, the fewer digits are left for their fraction."""
    near, far = (np.linspace(low, low + 6, 500).astype(np.float32) for low in (0, 250))
    errors = [np.abs(fast_sine(x) - np.sin(x.astype(np.float64))).max() for x in (near, far)]
    assert errors[0] < 1e-6 < 5e-6 < errors[1] < 1e-4


def test_a_rotation_loses_less_than_a_recurrence() -> None:
    """Over 16 steps about a digit lies between them, over 256 more than two."""
    assert drift(16)[-1] < 2e-6 < drift(16, recurrence=True)[-1]
    assert 50 * drift(256)[-1] < drift(256, recurrence=True)[-1]
