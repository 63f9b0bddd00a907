"""Who does which element: programs over a vector, and thread blocks over a matrix."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from grader.explore.picture import BLUE, DARK, GREY, LIGHT, PALE, Picture, canvas, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_blocks", "draw_grid"]

_MOST_LANES = 32
_MOST_THREADS = 1024


def draw_blocks(n: int, block_size: int) -> Picture:
    """A vector of `n` elements, cut into the blocks of its programs, and the masked tail of the last one.

    Raises:
        ValueError: a size below 1, or more lanes than can be read in a picture.
    """
    if n < 1 or block_size < 1:
        raise ValueError("n and block_size must be at least 1.")
    programs = ceil(n / block_size)
    lanes = programs * block_size
    if lanes > _MOST_LANES:
        raise ValueError(f"{lanes} lanes are too many to draw: choose n and block_size for at most {_MOST_LANES}.")
    from matplotlib.patches import Rectangle

    extent = max(lanes, 9) + 0.3
    figure, axes = canvas(0.56 * (extent + 0.9), 2.1)
    axes.set_xlim(-0.9, extent)
    axes.set_ylim(3.45, -0.35)
    for lane in range(lanes):
        inside = lane < n
        fill = PALE if inside else "white"
        cell = Rectangle((lane, 1), 1, 1, facecolor=fill, edgecolor=DARK if inside else GREY, linewidth=1)
        if not inside:
            cell.set(hatch="////", linestyle="--")
        axes.add_patch(cell)
        behind = None if inside else {"facecolor": "white", "edgecolor": "none", "pad": 1}
        axes.text(lane + 0.5, 1.5, str(lane), ha="center", va="center", fontsize=11, color=DARK, bbox=behind)
    for program in range(programs):
        left, right = program * block_size, (program + 1) * block_size
        axes.plot([left + 0.1, left + 0.1, right - 0.1, right - 0.1], [0.9, 0.6, 0.6, 0.9], color=BLUE, linewidth=2)
        axes.text((left + right) / 2, 0.32, f"program {program}", ha="center", va="center", fontsize=12, color=DARK)
    axes.text(-0.1, 1.5, "i", ha="right", va="center", fontsize=12, style="italic")
    past = lanes - n
    _key(axes, 2.3, f"n = {n}: the lane has an element, its mask is True", past=False)
    if past:
        _key(axes, 2.85, f"{past} past the end: the mask is False", past=True)
    alt = (
        f"A vector of {n} elements cut into {programs} blocks of {block_size}, one for each program. "
        + (f"The last {past} lanes of program {programs - 1} lie past the end and are masked." if past else "")
        + ("Every lane has an element." if not past else "")
    )
    return finish(figure, alt, width=min(960, int(46 * (extent + 0.9))))


def _key(axes: Axes, y: float, text: str, *, past: bool) -> None:
    from matplotlib.patches import Rectangle

    box = Rectangle((0, y), 0.6, 0.4, facecolor="white" if past else PALE, edgecolor=GREY if past else DARK)
    if past:
        box.set(hatch="////", linestyle="--")
    axes.add_patch(box)
    axes.text(0.8, y + 0.2, text, va="center", fontsize=11, color=DARK)


def draw_grid(height: int, width: int, block: tuple[int, int]) -> Picture:
    """A matrix under a grid of thread blocks of `block = (x, y)` threads, with the threads past its edge.

    Raises:
        ValueError: a size below 1, or more threads than can be read in a picture.
    """
    across, down = block
    if min(height, width, across, down) < 1:
        raise ValueError("height, width and both sizes of the block must be at least 1.")
    columns, rows = ceil(width / across), ceil(height / down)
    wide, high = columns * across, rows * down
    if wide * high > _MOST_THREADS or wide > 40:
        raise ValueError(f"{high} × {wide} threads are too many to draw: choose at most {_MOST_THREADS}, 40 across.")
    from matplotlib.patches import Rectangle

    margin = max(0.4, (8 - wide) / 2)  # room for the label above a narrow grid
    figure, axes = canvas(0.52 * (wide + 1.4 + 2 * margin), 0.52 * (high + 1.8))
    axes.set_xlim(-1.4 - margin, wide + margin)
    axes.set_ylim(high + 0.4, -1.4)
    axes.set_aspect("equal")
    for row in range(high):
        for column in range(wide):
            inside = row < height and column < width
            shade = PALE if (row // down + column // across) % 2 else LIGHT
            cell = Rectangle((column, row), 1, 1, facecolor=shade if inside else "white", edgecolor=GREY, linewidth=0.6)
            if not inside:
                cell.set(hatch="////", linestyle="--")
            axes.add_patch(cell)
    for y in range(rows):
        for x in range(columns):
            frame = (x * across, y * down)
            axes.add_patch(Rectangle(frame, across, down, fill=False, edgecolor=BLUE, linewidth=2.2))
            _name_block(axes, (x, y), frame, min(across, width - frame[0]), min(down, height - frame[1]))
    axes.add_patch(Rectangle((0, 0), width, height, fill=False, edgecolor=DARK, linewidth=3.4))
    axes.text(wide / 2, -0.75, "x: columns, blockIdx.x and threadIdx.x →", ha="center", va="center", fontsize=10.5)
    axes.text(-0.8, high / 2, "y: rows ↓", ha="center", va="center", fontsize=10.5, rotation=90)
    idle = wide * high - width * height
    alt = (
        f"A matrix of {height} rows and {width} columns, within a thick line, under a grid of {columns} by {rows} "
        f"thread blocks of {across} by {down} threads. {idle} of the {wide * high} threads lie past its right or lower "
        "edge, hatched."
    )
    return finish(figure, alt, width=int(min(760, 40 * (wide + 1.4 + 2 * margin))))


def _name_block(axes: Axes, block: tuple[int, int], corner: tuple[int, int], wide: int, high: int) -> None:
    """The block's number in the middle of its part inside the matrix, `wide` × `high`, so that no edge is hidden."""
    number = f"({block[0]}, {block[1]})"
    text = f"block\n{number}" if high > 1 else f"block {number}" if wide > 2 else number
    axes.text(
        corner[0] + wide / 2, corner[1] + high / 2, text, ha="center", va="center", fontsize=10 if wide > 1 else 8,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5, "alpha": 0.9},
    )  # fmt: skip
