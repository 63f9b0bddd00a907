"""A reduction in two stages: which program reads which block, and the bytes that the stages move."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from grader.explore.picture import BLUE, DARK, GREY, LIGHT, ORANGE, PALE, Picture, canvas, finish

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes

__all__ = ["draw_partial_traffic", "draw_stages", "partial_bytes"]

_MOST_PROGRAMS, _MOST_ROUNDS = 8, 8
_WIDTH, _ROW = 1.9, 0.8  # of a cell, in drawing units
_FLOAT_BYTES = 4


def partial_bytes(programs: int) -> int:
    """Bytes that the partial sums of so many programs move: each is written once and read once."""
    return 2 * _FLOAT_BYTES * programs


def draw_stages(n: int, block_size: int, programs: int) -> Picture:
    """Which program reads which elements of `n`, block by block, and how their sums meet.

    Raises:
        ValueError: a size below 1, or more programs or rounds than can be read in a picture.
    """
    if min(n, block_size, programs) < 1:
        raise ValueError("n, block_size and programs must be at least 1.")
    blocks = ceil(n / block_size)
    rounds = ceil(blocks / programs)
    if programs > _MOST_PROGRAMS or rounds > _MOST_ROUNDS:
        raise ValueError(
            f"{programs} programs in {rounds} rounds are too many to draw: choose at most {_MOST_PROGRAMS} programs, "
            f"and n for at most {_MOST_ROUNDS} rounds."
        )
    left, sums = 2.6, 1.0 + _ROW * rounds + 0.7
    figure, axes = canvas(0.72 * (left + _WIDTH * programs + 0.4), 0.72 * (sums + 2.6))
    axes.set_xlim(-left, _WIDTH * programs + 0.4)
    axes.set_ylim(sums + 2.3, -0.3)
    for program in range(programs):
        middle = _WIDTH * (program + 0.5)
        axes.text(middle, 0.5, f"program {program}", ha="center", va="center", fontsize=11.5, color=DARK)
        for number in range(program, blocks, programs):
            _block(axes, program, 1.0 + _ROW * (number // programs), number * block_size, n, block_size)
        axes.plot([middle, middle], [1.0 + _ROW * rounds + 0.1, sums - 0.05], color=BLUE, linewidth=2)
        _cell(axes, _WIDTH * program, sums, f"sum {program}", PALE)
        axes.plot([middle, _WIDTH * programs / 2], [sums + _ROW, sums + 1.5], color=ORANGE, linewidth=2, linestyle="--")
    _cell(axes, _WIDTH * (programs - 1) / 2, sums + 1.5, "mean", BLUE)
    for number in range(rounds):
        _label(axes, 1.0 + _ROW * number, f"round {number}")
    _label(axes, sums, "partial sums")
    _label(axes, sums + 1.5, "second stage")
    past = blocks * block_size - n
    alt = (
        f"{n} elements in {blocks} blocks of {block_size}, for {programs} programs. In each round every program reads "
        f"one block, side by side; then it goes on {programs} blocks further. Program 0 reads the blocks "
        f"{', '.join(str(number) for number in range(0, blocks, programs))}. "
        + (f"{_lanes(past)} of the last block {'is' if past == 1 else 'are'} masked. " if past else "")
        + f"Each program writes one sum, and the second stage adds these {programs} and divides by {n}."
    )
    return finish(figure, alt, width=min(860, int(52 * (left + _WIDTH * programs))))


def _lanes(past: int) -> str:
    return "The last lane" if past == 1 else f"The last {past} lanes"


def _block(axes: Axes, program: int, y: float, first: int, n: int, block_size: int) -> None:
    from matplotlib.patches import Rectangle

    last, share = min(first + block_size, n) - 1, min(1.0, (n - first) / block_size)
    x = _WIDTH * program
    if share < 1:
        axes.add_patch(Rectangle((x, y), _WIDTH, _ROW, facecolor="white", edgecolor=GREY, hatch="////", linestyle="--"))
    axes.add_patch(Rectangle((x, y), share * _WIDTH, _ROW, facecolor=LIGHT, edgecolor=DARK, linewidth=1))
    text = f"{first}–{last}" if last > first else str(first)
    behind = {"facecolor": LIGHT, "edgecolor": "none", "pad": 0.8}
    axes.text(x + _WIDTH / 2, y + _ROW / 2, text, ha="center", va="center", fontsize=10.5, color=DARK, bbox=behind)


def _cell(axes: Axes, x: float, y: float, text: str, fill: str) -> None:
    from matplotlib.patches import Rectangle

    axes.add_patch(Rectangle((x, y), _WIDTH, _ROW, facecolor=fill, edgecolor=DARK, linewidth=1))
    colour = "white" if fill == BLUE else DARK
    axes.text(x + _WIDTH / 2, y + _ROW / 2, text, ha="center", va="center", fontsize=11, color=colour)


def _label(axes: Axes, y: float, text: str) -> None:
    axes.text(-0.25, y + _ROW / 2, text, ha="right", va="center", fontsize=11, color=DARK)


def draw_partial_traffic(n: int, ways: Mapping[str, int]) -> Picture:
    """The bytes of `n` float32 elements, and beside them those of the partial sums of so many programs.

    Raises:
        ValueError: a size below 1.
    """
    if min(n, *ways.values()) < 1:
        raise ValueError("n and the numbers of programs must be at least 1.")
    from matplotlib.figure import Figure

    bars = {"x, read once": _FLOAT_BYTES * n} | {
        f"partial sums of {programs:,} programs:\n{why}": partial_bytes(programs) for why, programs in ways.items()
    }
    figure = Figure(figsize=(8.6, 0.75 * len(bars) + 0.7), layout="constrained")
    axes = figure.add_subplot()
    for y, moved in enumerate(bars.values()):
        own = y == 0
        axes.barh(y, moved, color=BLUE if own else ORANGE, hatch="" if own else "///", edgecolor="white", height=0.6)
        axes.text(1.15 * moved, y, _bytes(moved), va="center", fontsize=11.5, color=DARK)
    axes.set(xscale="log", yticks=range(len(bars)), xlim=(1, 60 * _FLOAT_BYTES * n))
    axes.set_yticklabels(list(bars), fontsize=11)
    axes.invert_yaxis()
    axes.set_xlabel("bytes moved (logarithmic axis)", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    alt = "Bars on a logarithmic axis. " + "; ".join(
        f"{name.replace(chr(10), ' ')}: {_bytes(moved)}" for name, moved in bars.items()
    )
    return finish(figure, f"{alt}.", width=760)


def _bytes(value: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:,.3g} {unit}"
        value /= 1024
    return f"{value:,.3g} GiB"
