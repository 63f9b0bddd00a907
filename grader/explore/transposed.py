"""The way of a tile through shared memory: rows of the input come in, columns of the tile go out as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.explore.picture import BLUE, DARK, GREY, LIGHT, ORANGE, Picture, canvas, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_transposed_tile"]

_TILE = 4  # rows and columns, and threads along x
_DOWN, _ACROSS = 2, 3  # tiles of x


def draw_transposed_tile() -> Picture:
    """One block's work in a transpose of 8 × 12, with tiles of 4 × 4: where four threads read, and where they write."""
    figure, axes = canvas(11, 5.1)
    axes.set_xlim(-0.6, 33.6)
    axes.set_ylim(14.2, -1.6)
    axes.set_aspect("equal")
    block_x, block_y = 2, 0
    _matrix(axes, (0, 2), _DOWN, _ACROSS, (block_y, block_x), "x, 8 × 12")
    _matrix(axes, (25, 0), _ACROSS, _DOWN, (block_x, block_y), "out, 12 × 8")
    left, top = 16.5, 4
    _grid(axes, left, top, 1, 1)
    axes.text(left + 2, top - 0.8, "tile, in shared memory", ha="center", va="center", fontsize=11, color=DARK)
    at_x, at_y = 0 + block_x * _TILE, 2 + block_y * _TILE
    out_x, out_y = 25 + block_y * _TILE, 0 + block_x * _TILE
    for thread in range(_TILE):
        _cell(axes, at_x + thread, at_y, thread, read=True)
        _cell(axes, out_x + thread, out_y, thread, read=False)
        if thread:
            _cell(axes, left + thread, top, thread, read=True)
        _cell(axes, left, top + thread, thread, read=False)
    arrow = {"arrowstyle": "-|>", "color": DARK, "linewidth": 2, "mutation_scale": 16}
    axes.annotate("", xy=(left - 0.2, top + 0.5), xytext=(at_x + _TILE + 0.2, at_y + 0.5), arrowprops=arrow)
    axes.annotate("", xy=(out_x - 0.2, out_y + 0.5), xytext=(left + 1.2, top + 3.5), arrowprops=arrow)
    axes.text(14.2, 2.5, "1", fontsize=13, weight="bold", color=DARK, ha="center")
    axes.text(21.6, 7.2, "2", fontsize=13, weight="bold", color=DARK, ha="center")
    axes.text(0, 12.9, "1: threads 0 to 3 read along a row of x and write along a row of the tile.", fontsize=11,
              va="center", color=DARK)  # fmt: skip
    axes.text(0, 13.8, "2: when the tile is full, they read down a column of the tile and write along a row of out.",
              fontsize=11, va="center", color=DARK)  # fmt: skip
    alt = (
        "A block of a transpose with tiles of 4 by 4. Threads 0 to 3 read along a row of x, in the tile at tile row 0 "
        "and tile column 2, and write it along a row of a tile in shared memory. Then they read down a column of that "
        "tile and write along a row of out, in the tile at tile row 2 and tile column 0."
    )
    return finish(figure, alt, width=820)


def _matrix(axes: Axes, corner: tuple[int, int], down: int, across: int, tile: tuple[int, int], name: str) -> None:
    from matplotlib.patches import Rectangle

    left, top = corner
    _grid(axes, left, top, down, across)
    axes.text(left + across * _TILE / 2, top - 0.8, name, ha="center", va="center", fontsize=11, color=DARK)
    frame = (left + tile[1] * _TILE, top + tile[0] * _TILE)
    axes.add_patch(Rectangle(frame, _TILE, _TILE, fill=False, edgecolor=DARK, linewidth=3.2, zorder=3))


def _grid(axes: Axes, left: float, top: float, down: int, across: int) -> None:
    from matplotlib.patches import Rectangle

    for row in range(down * _TILE):
        for column in range(across * _TILE):
            axes.add_patch(Rectangle((left + column, top + row), 1, 1, facecolor=LIGHT, edgecolor=GREY, linewidth=0.4))
    for y in range(down):
        for x in range(across):
            frame = (left + x * _TILE, top + y * _TILE)
            axes.add_patch(Rectangle(frame, _TILE, _TILE, fill=False, edgecolor=DARK, linewidth=1.3))


def _cell(axes: Axes, x: float, y: float, thread: int, *, read: bool) -> None:
    from matplotlib.patches import Rectangle

    colour, ink = (BLUE, "white") if read else (ORANGE, DARK)
    cell = Rectangle((x, y), 1, 1, facecolor=colour, edgecolor=DARK, linewidth=0.6, hatch=None if read else "///")
    axes.add_patch(cell)
    box = None if read else {"facecolor": ORANGE, "edgecolor": "none", "pad": 1}
    axes.text(x + 0.5, y + 0.5, str(thread), ha="center", va="center", fontsize=10, color=ink, bbox=box)
