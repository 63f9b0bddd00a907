"""A picture with knobs is drawn anew when one is moved, and has a still picture where there are no widgets."""

from __future__ import annotations

import sys

import pytest

from grader.explore import draw_sectors, explore_banks, explore_sectors


def test_moving_a_knob_draws_the_picture_anew() -> None:
    """The image below the sliders is the one of their values, alt text and all."""
    choices = explore_sectors()
    box = choices.widget()
    stride, offset, item_bytes, page = box.children
    assert choices.first.alt in page.value
    stride.value, offset.value, item_bytes.value = 4, 2, 8
    assert draw_sectors(4, 2, 8)._repr_html_() == page.value


@pytest.mark.parametrize("choices", [explore_sectors, explore_banks])
def test_a_notebook_gets_widgets_and_a_still_picture(choices) -> None:  # type: ignore[no-untyped-def]
    """A front end that knows no widgets shows the picture, a terminal its words."""
    bundle = choices()._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert bundle["text/html"] == choices().first._repr_html_()
    assert choices().first.alt in bundle["text/plain"]


def test_without_widgets_the_picture_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where ipywidgets is not installed, nothing is lost but the sliders."""
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    bundle = explore_banks()._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}
