"""Pictures have alt text, sliders redraw them, and listings are shown side by side."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
import torch

from grader.explore import (
    Picture,
    count_traffic,
    draw_banks,
    draw_blocks,
    draw_claims,
    draw_eager_and_fused,
    draw_grid,
    draw_padded_rows,
    draw_padded_tile,
    draw_reduction_tree,
    draw_row_in_sram,
    draw_running_maximum,
    draw_score_tiles,
    draw_sectors,
    draw_shuffles,
    draw_stages,
    draw_transposed_tile,
    draw_waits,
    explore_banks,
    explore_grouped_order,
    explore_pipeline,
    explore_sectors,
    side_by_side,
)
from grader.explore.drawing.displays import BLUE, GREY, LIGHT, ORANGE, PALE
from grader.explore.memory.tiled_matmul import draw_grouped_order, draw_pipeline

DRAWINGS = {
    "reduction tree": lambda: draw_reduction_tree(8),
    "shuffles": lambda: draw_shuffles(8),
    "blocks": lambda: draw_blocks(10, 4),
    "blocks without a tail": lambda: draw_blocks(8, 4),
    "one block": lambda: draw_blocks(1, 1),
    "grid": lambda: draw_grid(5, 7, block=(4, 2)),
    "padded rows": lambda: draw_padded_rows(3, 5, 8),
    "row in SRAM": draw_row_in_sram,
    "sectors": lambda: draw_sectors(8),
    "banks": lambda: draw_banks(32),
    "padded tile": draw_padded_tile,
    "transposed tile": draw_transposed_tile,
    "traffic": lambda: draw_eager_and_fused(count_traffic(lambda x: x.exp() + 1, torch.ones(4, 4))),
    "stages": lambda: draw_stages(10, 4, 2),
    "running maximum": lambda: draw_running_maximum((1.0, 2.0, 3.0, 1.0, 7.0), 2),
    "score tiles": lambda: draw_score_tiles(causal=True),
    "claims": lambda: draw_claims({"no sync": 200.6, "constant data": 0.9}),
    "waits": draw_waits,
}


class _Images(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[dict[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "img":
            self.found.append(dict(attrs))


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_picture_is_one_image_with_alt_text(name: str) -> None:
    """Every picture is one image in the notebook, with at least a sentence of alt text."""
    picture = DRAWINGS[name]()
    parser = _Images()
    parser.feed(picture._repr_html_())
    (image,) = parser.found
    assert image["alt"] == picture.alt
    assert picture.alt.endswith(".")
    assert len(picture.alt) > 40
    assert (image["src"] or "").startswith("data:image/svg+xml;base64,")


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_picture_is_the_same_each_time(name: str) -> None:
    """Drawing twice gives the same bytes: well-formed XML that loads nothing from other sites."""
    first, second = DRAWINGS[name](), DRAWINGS[name]()
    assert first.svg == second.svg
    ElementTree.fromstring(first.svg)
    assert not re.search(r'(?:href|src)="https?:', first.svg)


def test_a_picture_without_words_is_refused() -> None:
    """Alt text is required."""
    with pytest.raises(ValueError, match="alt text"):
        Picture("<svg/>", "")


def test_a_terminal_gets_the_words() -> None:
    """A terminal shows the alt text instead of the image."""
    assert "2 elements of program 2" in repr(draw_blocks(10, 4))


@pytest.mark.parametrize(
    ("n", "block", "words"),
    [
        (10, 4, "3 blocks of 4, one per program. The last 2 elements of program 2 are masked"),
        (8, 4, "No element is masked"),
        (1, 8, "1 element in 1 block of 8, one per program. The last 7 elements of program 0"),
    ],
)
def test_blocks_are_counted(n: int, block: int, words: str) -> None:
    """The alt text of a vector counts the programs and the masked elements."""
    assert words in draw_blocks(n, block).alt


def test_threads_past_the_edge_are_counted() -> None:
    """5 × 7 elements under blocks of 4 × 2 threads need 6 blocks with 48 threads, 13 of them idle."""
    alt = draw_grid(5, 7, block=(4, 2)).alt
    assert "grid of 2 by 3 = 6 thread blocks of 4 by 2 = 8 threads each" in alt
    assert "13 of 48 threads" in alt


@pytest.mark.parametrize(
    "call",
    [
        lambda: draw_blocks(0, 4),
        lambda: draw_blocks(100, 4),
        lambda: draw_grid(0, 1, (1, 1)),
        lambda: draw_grid(100, 100, (8, 8)),
        lambda: draw_padded_rows(3, 5, 4),
        lambda: draw_padded_rows(3, 5, 100),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_a_sentence(call) -> None:  # type: ignore[no-untyped-def]
    """The message says which numbers can be drawn."""
    with pytest.raises(ValueError, match=r"must be|choose"):
        call()


def test_colours_differ_in_greyscale() -> None:
    """Colours with different meanings also differ in brightness."""

    def brightness(colour: str) -> float:
        red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    assert brightness(ORANGE) - brightness(BLUE) > 0.2
    assert brightness(LIGHT) - brightness(PALE) > 0.08
    assert brightness(PALE) - brightness(GREY) > 0.2


def test_moving_a_knob_draws_the_picture_anew() -> None:
    """The image below the sliders shows their values, with its alt text."""
    choices = explore_sectors()
    box = choices.widget()
    stride, offset, item_bytes, page = box.children
    assert choices.first.alt in page.value
    stride.value, offset.value, item_bytes.value = 4, 2, 8
    assert draw_sectors(4, 2, 8)._repr_html_() == page.value


@pytest.mark.parametrize("choices", [explore_sectors, explore_banks])
def test_a_notebook_gets_widgets_and_a_still_picture(choices) -> None:  # type: ignore[no-untyped-def]
    """A front end without widgets shows the picture, a terminal the alt text."""
    bundle = choices()._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert choices().first._repr_html_() in bundle["text/html"]
    assert choices().first.alt in bundle["text/plain"]


def test_still_pictures_show_what_a_page_compares() -> None:
    """An exported page has no slider, so it shows each value that the text compares."""
    for choices, draw, values in (
        (explore_banks(), draw_banks, (32, 33)),
        (explore_pipeline(), draw_pipeline, (1, 4)),
        (explore_grouped_order(), draw_grouped_order, (1, 8)),
    ):
        assert choices._repr_mimebundle_()["text/html"] == "".join(draw(value)._repr_html_() for value in values)


def test_without_widgets_the_picture_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """If ipywidgets is not installed, only the sliders are missing."""
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    bundle = explore_banks()._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}


def _first(a: int) -> int:
    return a


def _second(b: int) -> int:
    return b


def test_two_kernels_stand_side_by_side() -> None:
    """Both sources are shown under their titles, escaped, even if a compiler wraps the function."""

    class Wrapped:
        fn = staticmethod(_second)

    shown = side_by_side(Numba=_first, Triton=Wrapped())
    assert shown.titles == ("Numba", "Triton")
    assert "def _second(b: int) -&gt; int" in shown._repr_html_()
    with pytest.raises(ValueError, match="exactly two"):
        side_by_side(Numba=_first)
