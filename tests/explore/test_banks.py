"""Bank conflicts are counted as the hardware counts them, and a padded row removes them."""

from __future__ import annotations

from math import gcd

import pytest

from grader.explore import bank_access, draw_banks, draw_padded_tile, explore_banks


@pytest.mark.parametrize("step", range(1, 65))
def test_conflicts_are_the_common_divisor_with_32(step: int) -> None:
    """A step that shares the factor d with 32 makes d threads meet in each bank: odd steps are free."""
    assert bank_access(step).ways == gcd(step, 32)


def test_the_same_word_is_no_conflict() -> None:
    """What several threads want at the same place is given to all of them together."""
    access = bank_access(0)
    assert access.ways == 1
    assert sum(access.per_bank) == 1


def test_the_picture_says_what_is_counted() -> None:
    """The words of the picture are those of the count."""
    assert "1 of 32 banks, and the busiest bank must give 32 words: 32-way conflict, 32 cycles" in draw_banks(32).alt
    assert "32 of 32 banks" in draw_banks(33).alt
    assert "no conflict" in draw_banks(33).alt


def test_the_small_tile_is_counted_too() -> None:
    """Without padding the column lies in one bank; a word a row spreads it, and two spread it half as far."""
    assert "one bank, 8 words of it" in draw_padded_tile().alt
    assert "no bank has more than 1 of it" in draw_padded_tile(1).alt
    assert "no bank has more than 2 of it" in draw_padded_tile(2).alt


@pytest.mark.parametrize("call", [lambda: bank_access(-1), lambda: draw_padded_tile(0), lambda: draw_padded_tile(9)])
def test_what_cannot_be_drawn_is_refused(call) -> None:  # type: ignore[no-untyped-def]
    """A learner who tries other numbers learns which ones there are."""
    with pytest.raises(ValueError, match="must be"):
        call()


def test_the_first_position_of_the_slider_is_a_column_of_a_tile() -> None:
    """What is shown before anybody moves the slider is the conflict that the notebook speaks of."""
    assert "32-way" in explore_banks().first.alt
