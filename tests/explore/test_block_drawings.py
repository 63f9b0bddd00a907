"""A two-stage reduction is drawn block by block."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from grader.explore import draw_stages, partial_bytes


def test_a_program_goes_on_as_many_blocks_further_as_there_are_programs() -> None:
    """43 elements in blocks of 4 for 4 programs: the blocks that program 0 reads, and the masked element."""
    alt = draw_stages(43, 4, 4).alt
    assert "11 blocks of 4, for 4 programs" in alt
    assert "Program 0 reads the blocks 0, 4, 8." in alt
    assert "The last element of the last block is masked." in alt
    assert "adds the 4 sums and divides by 43" in alt
    assert "masked" not in draw_stages(32, 4, 4).alt
    assert "The last 3 elements of the last block are masked" in draw_stages(41, 4, 4).alt


@pytest.mark.parametrize("wrong", [(0, 4, 4), (43, 0, 4), (43, 4, 0), (43, 4, 9), (1000, 4, 4)])
def test_what_cannot_be_drawn_is_refused_with_a_sentence(wrong: tuple[int, int, int]) -> None:
    """The message says which numbers can be drawn."""
    with pytest.raises(ValueError, match=r"must be|choose"):
        draw_stages(*wrong)


def test_partial_sums_are_written_once_and_read_once() -> None:
    """65,536 float32 sums are 256 KiB each way, in all 512 KiB."""
    assert partial_bytes(65_536) == 2 * 256 * 1024


def test_pictures_are_the_same_each_time() -> None:
    """Drawing twice gives the same bytes: well-formed XML that loads nothing from other sites."""
    first, second = draw_stages(10, 4, 2), draw_stages(10, 4, 2)
    assert first.svg == second.svg
    ElementTree.fromstring(first.svg)
    assert not re.search(r'(?:href|src)="https?:', first.svg)
