"""Drawings of a softmax in pieces and of fused attention: a running maximum, and a matrix that is never stored."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from grader.explore.drawing.displays import (
    BLUE,
    DARK,
    GREY,
    LIGHT,
    ORANGE,
    PALE,
    Picture,
    canvas,
    chart,
    finish,
    rectangle,
    write,
)
from grader.words import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_VALUES, _MOST_TILES = 64, 12


def draw_running_maximum(values: Sequence[float], piece: int) -> Picture:
    """Draw a row in pieces, its running maximum, and the sum of `exp(x - maximum)` before and after each piece.

    Raises:
        ValueError: no values, too many to draw, or a piece shorter than 1.
    """
    if not 0 < len(values) <= _MOST_VALUES or piece < 1:
        raise ValueError(f"Choose 1 to {_MOST_VALUES} values, and pieces of at least 1.")
    steps = _running(values, piece)
    figure, axes = chart(9.4, 3.9)
    axes.plot(range(len(values)), values, "o", color=BLUE, markersize=7, label="elements of the row")
    top = max(values)
    for number, (highest, factor, total) in enumerate(steps):
        first, last = number * piece - 0.5, min((number + 1) * piece, len(values)) - 0.5
        label = "running maximum" if number == 0 else None
        axes.plot([first, last], [highest, highest], color=ORANGE, linewidth=3, label=label)
        if number:
            axes.axvline(first, color=GREY, linestyle="--", linewidth=1)
        rescaled = "" if number == 0 else f"× {factor:.3g}, then add\n"
        axes.text((first + last) / 2, top + 1.0, f"{rescaled}sum {total:.3g}", ha="center", va="bottom", fontsize=11)
    axes.set(xlabel="position in the row", ylabel="value", xlim=(-0.5, len(values) - 0.5), ylim=(None, top + 3.4))
    axes.legend(loc="lower right", frameon=False, fontsize=11)
    said = "; ".join(
        f"after piece {number} the maximum is {highest:g} and the sum {total:.3g}"
        + (f", the sum so far having been multiplied by {factor:.3g}" if number else "")
        for number, (highest, factor, total) in enumerate(steps)
    )
    alt = f"A row of {plural(len(values), 'element')} in pieces of {piece}, and its running maximum: {said}."
    return finish(figure, alt, width=760)


def _running(values: Sequence[float], piece: int) -> list[tuple[float, float, float]]:
    """Return the maximum after each piece, the factor for the sum so far, and the new sum."""
    highest, total, steps = -math.inf, 0.0, []
    for first in range(0, len(values), piece):
        part = values[first : first + piece]
        higher = max(highest, *part)
        factor = math.exp(highest - higher)
        total = total * factor + sum(math.exp(value - higher) for value in part)
        highest = higher
        steps.append((highest, factor, total))
    return steps


def tile_kinds(tiles: int, causal: bool) -> list[list[str]]:
    """Return what a fused kernel does with each square tile of the scores: "whole", "masked" or "skipped"."""
    if not causal:
        return [["whole"] * tiles for _ in range(tiles)]
    return [
        ["whole" if column < row else "masked" if column == row else "skipped" for column in range(tiles)]
        for row in range(tiles)
    ]


def draw_score_tiles(tiles: int = 6, row: int = 3, *, causal: bool = False) -> Picture:
    """Draw the scores of an attention as square tiles, and the row of tiles that one program computes.

    Raises:
        ValueError: too few or too many tiles, or a row that is not among them.
    """
    if not 1 <= tiles <= _MOST_TILES or not 0 <= row < tiles:
        raise ValueError(f"Choose 1 to {_MOST_TILES} tiles, and a row from 0 to one less.")
    kinds = tile_kinds(tiles, causal)
    figure, axes = canvas(
        9.2, 9.2 * (tiles + 3.6) / (tiles + 8.6), (-2.6, tiles + 6.0), (tiles + 0.9, -2.7), equal=True
    )
    for down in range(tiles):
        _tile(axes, -1.6, down, ORANGE if down == row else LIGHT, "")
        for across in range(tiles):
            kind, own = kinds[down][across], down == row
            colour = "white" if kind == "skipped" else PALE if own else LIGHT
            _tile(axes, across, down, colour, "////" if kind == "masked" else "", dashed=kind == "skipped")
        _tile(axes, tiles + 0.6, down, ORANGE if down == row else LIGHT, "")
    for across in range(tiles):
        wanted = kinds[row][across] != "skipped"
        _tile(axes, across, -1.6, BLUE if wanted else LIGHT, "", height=0.6)
        _tile(axes, across, -0.8, BLUE if wanted else LIGHT, "", height=0.6)
    for x, y, text in (
        (-1.1, tiles + 0.4, "q"),
        (tiles / 2, tiles + 0.4, "scores, never stored"),
        (tiles + 1.1, tiles + 0.4, "out"),
    ):
        write(axes, x, y, text, 11.5)
    write(axes, -0.2, -1.3, "k", 11.5, "right")
    write(axes, -0.2, -0.5, "v", 11.5, "right")
    legend = [(PALE, "", "this program's tiles"), (LIGHT, "", "other programs' tiles")]
    if causal:
        legend += [("white", "", "skipped: every key is later"), (LIGHT, "////", "masked within the tile")]
    for number, (colour, hatch, text) in enumerate(legend):
        y = 0.2 + 0.85 * number
        _tile(axes, tiles + 2.1, y, colour, hatch, height=0.5, width=0.5, dashed=colour == "white")
        write(axes, tiles + 2.8, y + 0.25, text, 10, "left")
    alt = (
        f"The scores as {plural(tiles, 'row')} of {plural(tiles, 'tile')}, with q to the left, k and v above and out "
        f"to the right. One program keeps the tile of q in row {row}. It goes along that row of tiles "
        "with tiles of k and v, and writes one tile of out."
    )
    if causal:
        alt += (
            f" With a causal mask it computes {plural(row + 1, 'tile')}: those left of the diagonal whole, the one on "
            "the diagonal masked. The tiles right of it are skipped."
        )
    return finish(figure, alt, width=760)


def _tile(
    axes: Axes, x: float, y: float, colour: str, hatch: str, *, height: float = 1, width: float = 1,
    dashed: bool = False,
) -> None:  # fmt: skip
    edge, style = (GREY, "--") if dashed else (DARK, "-")
    rectangle(axes, (x, y), width, height, facecolor=colour, edgecolor=edge, linewidth=0.9, linestyle=style,
              hatch=hatch or None)  # fmt: skip
