"""The running maximum of a row and the tiles of an attention are drawn as a kernel computes them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from grader.explore import Picture, draw_running_maximum, draw_score_tiles, tile_kinds

_ROW = (1.0, 2.0, 3.0, 1.0, 2.0, 7.0, 0.0, 1.0, 5.0, 4.0)


def test_the_last_sum_is_that_of_the_whole_row() -> None:
    """However long the pieces are, the alt text ends with the maximum and the sum of the row."""
    total = float((torch.tensor(_ROW) - 7).exp().sum())
    for piece in (1, 3, 4, 10):
        assert f"the maximum is 7 and the sum {total:.3g}" in draw_running_maximum(_ROW, piece).alt.split(";")[-1]


def test_the_factor_is_that_of_the_rise() -> None:
    """From 3 to 7 the sum so far shrinks by exp(-4); where the maximum stays, the factor is 1."""
    alt = draw_running_maximum(_ROW, 4).alt
    assert "multiplied by 0.0183" in alt
    assert "multiplied by 1." in alt


def test_causal_tiles_are_skipped_only_if_every_key_is_later() -> None:
    """Compare the kinds with the mask itself, for tiles of 4."""
    seen = torch.ones(24, 24).tril().bool()
    for row, kinds in enumerate(tile_kinds(6, causal=True)):
        for column, kind in enumerate(kinds):
            tile = seen[4 * row : 4 * row + 4, 4 * column : 4 * column + 4]
            assert kind == ("whole" if tile.all() else "masked" if tile.any() else "skipped")
    assert {kind for row in tile_kinds(3, causal=False) for kind in row} == {"whole"}
    assert "it computes 3 tiles" in draw_score_tiles(5, 2, causal=True).alt


@pytest.mark.parametrize(
    "draw",
    [
        lambda: draw_running_maximum([], 4),
        lambda: draw_running_maximum([1.0] * 99, 4),
        lambda: draw_running_maximum([1.0], 0),
        lambda: draw_score_tiles(0),
        lambda: draw_score_tiles(40),
        lambda: draw_score_tiles(6, 6),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_a_sentence(draw: Callable[[], Picture]) -> None:
    """The message says which numbers can be drawn."""
    with pytest.raises(ValueError, match="Choose 1 to"):
        draw()
