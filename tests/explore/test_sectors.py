"""The sectors that a warp touches are counted as the hardware counts them, and the picture says the same."""

from __future__ import annotations

import pytest

from grader.explore import draw_sectors, explore_sectors, warp_access


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
        (0, 0, 4, 1, 0.125),  # all threads want the same
    ],
)
def test_sectors_are_counted(stride: int, offset: int, item_bytes: int, sectors: int, used: float) -> None:
    """Counts that can be had with pencil and paper."""
    access = warp_access(stride, offset, item_bytes)
    assert len(access.sectors) == sectors
    assert access.share_used == pytest.approx(used)


def test_the_picture_says_what_is_counted() -> None:
    """The words of the picture are those of the count, also where not all lines are drawn."""
    words = draw_sectors(stride=32).alt
    assert "32 sectors of 32 bytes: 1,024 bytes are fetched, and 128 of them used, 12.5 %" in words
    assert "from element 1 on" in draw_sectors(offset=1).alt
    assert "They touch 1 sector of" in draw_sectors(item_bytes=1).alt


@pytest.mark.parametrize("size", [3, 0, 32])
def test_a_load_that_does_not_exist_is_refused(size: int) -> None:
    """A thread loads 1, 2, 4, 8 or 16 bytes at once."""
    with pytest.raises(ValueError, match="must be"):
        draw_sectors(item_bytes=size)


def test_every_slider_position_can_be_drawn() -> None:
    """Whatever a learner chooses has a picture."""
    knobs = explore_sectors().knobs
    for item_bytes in knobs["item_bytes"]:
        for stride, offset in ((max(knobs["stride"]), max(knobs["offset"])), (min(knobs["stride"]), 0)):
            assert draw_sectors(stride, offset, item_bytes).alt
