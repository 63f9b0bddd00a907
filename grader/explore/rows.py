"""Pictures of rows: how a row lies in memory, and where it stays while a kernel works on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grader.explore.picture import BLUE, DARK, GREY, LIGHT, ORANGE, PALE, Picture, canvas, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_padded_rows", "draw_row_in_sram"]


def draw_padded_rows(rows: int, columns: int, stride: int) -> Picture:
    """A matrix whose rows start `stride` elements apart, as it lies in memory: numbers are offsets.

    Raises:
        ValueError: a stride smaller than a row, or more elements than can be read in a picture.
    """
    if min(rows, columns) < 1 or stride < columns:
        raise ValueError("rows and columns must be at least 1, and the stride at least as large as a row.")
    if stride > 24 or rows > 12:
        raise ValueError("That is too much to draw: choose at most 12 rows and a stride of 24.")
    from matplotlib.patches import Rectangle

    figure, axes = canvas(0.55 * stride + 1.7, 0.5 * rows + 0.9)
    axes.set_xlim(-1.9, stride + 0.3)
    axes.set_ylim(rows + 0.9, -0.3)
    for row in range(rows):
        axes.text(-0.2, row + 0.5, f"row {row}", ha="right", va="center", fontsize=11, color=DARK)
        for column in range(stride):
            inside = column < columns
            cell = Rectangle(
                (column, row), 1, 1, facecolor=PALE if inside else "white", edgecolor=DARK if inside else GREY
            )
            if not inside:
                cell.set(hatch="////", linestyle="--")
            axes.add_patch(cell)
            box = None if inside else {"facecolor": "white", "edgecolor": "none", "pad": 1}
            axes.text(
                column + 0.5, row + 0.5, str(row * stride + column), ha="center", va="center", fontsize=10, bbox=box
            )
    axes.text(columns / 2, rows + 0.45, f"{columns} columns", ha="center", va="center", fontsize=11, color=DARK)
    if stride > columns:
        axes.text((columns + stride) / 2, rows + 0.45, "padding", ha="center", va="center", fontsize=11, color=DARK)
    alt = (
        f"A matrix of {rows} rows and {columns} columns in memory. Each row starts {stride} elements after the one "
        "before" + (f"; the {stride - columns} elements between two rows are padding." if stride > columns else ".")
    )
    return finish(figure, alt, width=int(min(760, 44 * stride + 130)))


def draw_row_in_sram() -> Picture:
    """A row's way through the eager softmax and through the fused one, between DRAM and the chip."""
    figure, axes = canvas(10, 4.1)
    axes.set_xlim(0, 20)
    axes.set_ylim(8.6, 0)
    eager = (("max", False), ("subtract", True), ("exp", True), ("sum", False), ("divide", True))
    for left, right, title in ((0.3, 12.2, "eager: five kernels"), (13.6, 19.7, "fused: one kernel")):
        _box(axes, left, 0.9, right, 4.3, LIGHT, "")
        _box(axes, left, 6.3, right, 8.1, PALE, "")
        axes.text(left + 0.2, 0.45, title, fontsize=13, weight="bold", color=DARK, va="center")
        axes.text(left + 0.25, 1.35, "on the chip: registers and SRAM", fontsize=10.5, color=DARK, va="center")
        axes.text((left + right) / 2, 7.2, "DRAM: the matrix, millions of bytes", fontsize=11, ha="center", va="center")
    for index, (name, writes_matrix) in enumerate(eager):
        middle = 1.65 + 2.3 * index
        _box(axes, middle - 1, 2.1, middle + 1, 3.8, "white", name)
        _arrow(axes, middle - 0.35, 6.2, 3.9, BLUE, dashed=False)
        if writes_matrix:
            _arrow(axes, middle + 0.35, 3.9, 6.2, ORANGE, dashed=True)
    _box(axes, 13.95, 2.0, 19.35, 3.9, "white", "max → subtract → exp\n→ sum → divide")
    _arrow(axes, 15.2, 6.2, 4.0, BLUE, dashed=False)
    _arrow(axes, 18.1, 4.0, 6.2, ORANGE, dashed=True)
    axes.text(15.0, 5.2, "reads", ha="right", va="center", fontsize=11, color=DARK)
    axes.text(18.3, 5.2, "writes", ha="left", va="center", fontsize=11, color=DARK)
    alt = (
        "Left, the eager softmax: five kernels, each fetches the row from DRAM, and three send a whole row back. "
        "Right, the fused softmax: the row comes in once, stays on the chip for all five steps, and goes out once."
    )
    return finish(figure, alt, width=800)


def _box(axes: Axes, left: float, top: float, right: float, bottom: float, fill: str, text: str) -> None:
    from matplotlib.patches import Rectangle

    axes.add_patch(Rectangle((left, top), right - left, bottom - top, facecolor=fill, edgecolor=DARK, linewidth=1.2))
    axes.text((left + right) / 2, (top + bottom) / 2, text, ha="center", va="center", fontsize=11.5, color=DARK)


def _arrow(axes: Axes, x: float, start: float, end: float, colour: str, *, dashed: bool) -> None:
    properties: dict[str, Any] = {"arrowstyle": "-|>", "color": colour, "linewidth": 2.6, "mutation_scale": 16}
    properties |= {"shrinkA": 0, "shrinkB": 0, "linestyle": (0, (4, 2)) if dashed else "solid"}
    axes.annotate("", xy=(x, end), xytext=(x, start), arrowprops=properties)
