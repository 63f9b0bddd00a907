"""Pictures: inside their frame, never invisible, and left out where they would say nothing."""

from __future__ import annotations

import re

import pytest

from grader.feedback.pictures import gate_bar, map_alt, map_of, share_bar
from grader.verdict import GateResult, Mismatch


def _mismatch(shape: tuple[int, ...], low: tuple[int, ...], high: tuple[int, ...], wrong: int = 1) -> Mismatch:
    total = 1
    for size in shape:
        total *= size
    return Mismatch("out", shape, wrong, total, low, "0", "1", low, high)


@pytest.mark.parametrize(
    ("shape", "low", "high"),
    [
        ((1_000_003,), (1_000_002,), (1_000_002,)),
        ((1_000_003,), (0,), (0,)),
        ((1823, 781), (1822, 780), (1822, 780)),
        ((16, 32_768), (0, 32_767), (15, 32_767)),
        ((32_768, 2), (32_767, 0), (32_767, 1)),
        ((1, 1000), (0, 999), (0, 999)),
        ((1000, 1), (999, 0), (999, 0)),
    ],
)
@pytest.mark.parametrize("side", ["", "before", "between", "after"])
def test_a_small_region_is_seen_and_inside(shape: tuple[int, ...], low: tuple[int, ...], high: tuple[int, ...],
                                           side: str) -> None:  # fmt: skip
    """However small a part is wrong, it has a visible size within the map, and the picture holds all that is drawn."""
    svg = map_of(_mismatch(shape, low, high), side)

    wide, tall = (float(number) for number in re.search(r'viewBox="0 0 (\d+) (\d+)"', svg).groups())  # type: ignore[union-attr]
    rectangle = r'class="gr-(\w+)" x="([\d.-]+)" y="([\d.-]+)" width="([\d.]+)" height="([\d.]+)"'
    frames = {kind: [float(number) for number in numbers] for kind, *numbers in re.findall(rectangle, svg)}
    x, y, w, h = frames["wrong"]
    left, top, mw, mh = frames["map"]
    assert min(w, h) >= 3
    assert left - 0.1 <= x
    assert x + w <= left + mw + 0.2
    assert top - 0.1 <= y
    assert y + h <= top + mh + 0.2
    for x, y, w, h in frames.values():
        assert x >= 0
        assert x + w <= wide
        assert y >= 0
        assert y + h <= tall + 0.5
    hatches = [float(number) for number in re.findall(r"[ML]([\d.]+) [\d.]+", svg)]
    assert all(0 <= at <= wide for at in hatches)


def test_no_picture_where_it_says_nothing() -> None:
    """A single element, an output that is wrong all over and one of three dimensions have no map."""
    assert map_of(_mismatch((1,), (0,), (0,))) == ""
    assert map_of(_mismatch((4, 4), (0, 0), (3, 3), wrong=16)) == ""
    assert map_of(_mismatch((4, 4, 4), (0, 0, 0), (3, 3, 3))) == ""


def test_the_map_in_words() -> None:
    """The alternative text says what the map shows."""
    said = map_alt(_mismatch((83, 781), (0, 768), (82, 780)), "after")

    assert said == (
        "Map of out: 83 rows of 781 elements. All wrong elements lie in columns 768 to 780 of rows 0 to 82. "
        "Elements were written past its end."
    )


def test_bars_hold_the_interval_and_the_mark() -> None:
    """The bar, its whiskers and the mark stay inside, whether the submission is far ahead or far behind."""
    for ratio in (0.01, 1.0, 1.2, 50.0):
        gate = GateResult("torch", "torch", 1.2, "passed", 3, 3, ratio, ratio * 0.9, ratio * 1.1)
        numbers = [float(number) for number in re.findall(r'(?:x|x1|x2|width)="([\d.]+)"', gate_bar(gate))]
        assert max(numbers) <= 420
    assert gate_bar(GateResult("torch", "torch", 1.2, "needs_gpu", 0, 3)) == ""
    assert 'width="90.0"' in share_bar(1.7)
