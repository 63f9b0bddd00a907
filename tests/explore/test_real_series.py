"""The real star is searched by whatever periodogram it is given, and its known period is known again."""

from __future__ import annotations

from typing import Any

from grader.exercises.ladder import eager
from grader.explore.real_series import search_star


def _nothing(t: Any, y: Any, freqs: Any, out: Any) -> None:
    raise NotImplementedError("not written yet")


def _flat(t: Any, y: Any, freqs: Any, out: Any) -> None:
    out.fill_(1.0)


def test_a_right_periodogram_finds_the_published_period() -> None:
    """In float32, on uneven measurements of seven years."""
    star = search_star(eager)
    assert star.found
    assert "found" in repr(star)


def test_a_wrong_one_does_not() -> None:
    """Nor does one that is not written, and neither is an error in the notebook."""
    assert not search_star(_flat).found
    assert repr(search_star(_nothing)).endswith("not written yet")
    assert "not every power" in repr(search_star(lambda t, y, freqs, out: None))
