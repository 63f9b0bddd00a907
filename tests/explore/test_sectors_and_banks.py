"""Sectors and banks are counted for a warp's load."""

from __future__ import annotations

from math import gcd

import pytest

from grader.explore import (
    bank_access,
    draw_banks,
    draw_padded_tile,
    draw_sectors,
    explore_banks,
    explore_sectors,
    warp_access,
)


@pytest.mark.parametrize(
    ("stride", "offset", "item_bytes", "sectors", "used"),
    [
        (1, 0, 4, 4, 1.0),
        (2, 0, 4, 8, 0.5),
        (8, 0, 4, 32, 0.125),
        (32, 0, 4, 32, 0.125),
        (1, 1, 4, 5, 0.8),
        (1, 8, 4, 4, 1.0),  # a whole sector further on
        (1, 0, 16, 16, 1.0),
        (1, 0, 1, 1, 1.0),
        (3, 0, 1, 3, 1 / 3),  # the red bytes of an image
        (0, 0, 4, 1, 0.125),  # all threads read the same element
    ],
)
def test_sectors_are_counted(stride: int, offset: int, item_bytes: int, sectors: int, used: float) -> None:
    """These counts can be checked with pencil and paper."""
    access = warp_access(stride, offset, item_bytes)
    assert len(access.sectors) == sectors
    assert access.share_used == pytest.approx(used)


def test_the_picture_says_what_is_counted() -> None:
    """The alt text has all counts, even if not all lines are drawn."""
    words = draw_sectors(stride=32).alt
    assert "32 sectors of 32 bytes: 1024 bytes are fetched, and 128 of them are used, 12.5 %" in words
    assert "from element 1 on" in draw_sectors(offset=1).alt
    assert "They touch 1 sector of" in draw_sectors(item_bytes=1).alt


@pytest.mark.parametrize("size", [3, 0, 32])
def test_a_load_that_does_not_exist_is_refused(size: int) -> None:
    """A thread loads 1, 2, 4, 8 or 16 bytes at once."""
    with pytest.raises(ValueError, match="must be"):
        draw_sectors(item_bytes=size)


def test_every_slider_position_can_be_drawn() -> None:
    """Every choice of a learner has a picture."""
    knobs = explore_sectors().knobs
    for item_bytes in knobs["item_bytes"]:
        for stride, offset in ((max(knobs["stride"]), max(knobs["offset"])), (min(knobs["stride"]), 0)):
            assert draw_sectors(stride, offset, item_bytes).alt


@pytest.mark.parametrize("step", range(1, 65))
def test_conflicts_are_the_common_divisor_with_32(step: int) -> None:
    """If the step and 32 have the common divisor d, d threads use each bank: odd steps have no conflicts."""
    assert bank_access(step).ways == gcd(step, 32)


def test_the_same_word_is_no_conflict() -> None:
    """A word that several threads read is delivered to all of them at once."""
    access = bank_access(0)
    assert access.ways == 1
    assert sum(access.per_bank) == 1


def test_the_picture_says_the_conflict() -> None:
    """The alt text has the counts."""
    assert "1 of 32 banks, and the busiest bank must deliver 32 words: 32-way conflict, 32 cycles" in draw_banks(32).alt
    assert "32 of 32 banks" in draw_banks(33).alt
    assert "no conflict" in draw_banks(33).alt


def test_the_small_tile_is_counted_too() -> None:
    """Without padding the column is in one bank; one word per row spreads it over 8 banks, two words over 4."""
    assert "all 8 words of the marked column are in one bank" in draw_padded_tile().alt
    assert "no bank has more than 1 word of it" in draw_padded_tile(1).alt
    assert "no bank has more than 2 words of it" in draw_padded_tile(2).alt


@pytest.mark.parametrize("call", [lambda: bank_access(-1), lambda: draw_padded_tile(0), lambda: draw_padded_tile(9)])
def test_what_cannot_be_drawn_is_refused(call) -> None:  # type: ignore[no-untyped-def]
    """The message says which numbers are allowed."""
    with pytest.raises(ValueError, match="must be"):
        call()


def test_the_first_position_of_the_slider_is_a_column_of_a_tile() -> None:
    """Before the slider is moved, the picture shows the conflict that the notebook describes."""
    assert "32-way" in explore_banks().first.alt
