"""In which order tiles of a product are computed, and how often the L2 cache has what they read: simulated, drawn."""

from __future__ import annotations

import functools
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grader.explore.choices import Choices
from grader.explore.picture import BLUE, DARK, GREY, LIGHT, ORANGE, PALE, Picture, canvas, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["GroupedOrder", "draw_grouped_order", "explore_grouped_order", "grouped_order"]

_TILES = 64  # along each axis of `out`, as at 8192 × 8192 with tiles of 128 × 128
_STEPS = 128  # along K, as at 8192 with steps of 64
_TILE_KIB = 16  # 128 × 64 float16
_AT_ONCE = 132  # programs that run together, one on each SM of an H100 or H200
_CACHE_MIB = 50  # their L2


@dataclass(frozen=True)
class GroupedOrder:
    """A product of 8192 × 8192 matrices whose programs take tiles in groups of `group` rows; sizes in tiles.

    `first_wave` has (row, column) of the tiles that are computed at the same time first. `loads` counts tiles of `a`
    and `b` that programs ask for, `misses` those that come from DRAM, and `distinct` is how many different ones the
    first wave reads in a step along K.
    """

    group: int
    first_wave: tuple[tuple[int, int], ...]
    distinct: int
    loads: int
    misses: int

    @property
    def hit_rate(self) -> float:
        """The share of the loads that the L2 has."""
        return 1 - self.misses / self.loads

    @property
    def dram_gib(self) -> float:
        """What comes from DRAM."""
        return self.misses * _TILE_KIB / (1 << 20)


@functools.cache
def grouped_order(group: int) -> GroupedOrder:
    """Simulates an L2 that holds the tiles used last, 132 programs at a time, all of them at the same step along K.

    Raises:
        ValueError: a group of less than 1 row.
    """
    if group < 1:
        raise ValueError("group must be at least 1 row of tiles.")
    order = [_tile(number, group) for number in range(_TILES * _TILES)]
    waves = [order[at : at + _AT_ONCE] for at in range(0, len(order), _AT_ONCE)]
    room = _CACHE_MIB * 1024 // _TILE_KIB
    cache: OrderedDict[tuple[str, int, int], None] = OrderedDict()
    misses = 0
    for wave in waves:
        rows, columns = ({tile[axis] for tile in wave} for axis in (0, 1))
        for step in range(_STEPS):
            for wanted in [("a", row, step) for row in rows] + [("b", step, column) for column in columns]:
                if wanted in cache:
                    cache.move_to_end(wanted)
                    continue
                misses += 1
                cache[wanted] = None
                if len(cache) > room:
                    cache.popitem(last=False)
    first = tuple(waves[0])
    distinct = sum(len({tile[axis] for tile in first}) for axis in (0, 1))
    return GroupedOrder(group, first, distinct, 2 * _STEPS * len(order), misses)


def _tile(number: int, group: int) -> tuple[int, int]:
    """Row and column of the tile that a program takes."""
    first = number // (group * _TILES) * group
    height = min(_TILES - first, group)
    inside = number % (group * _TILES)
    return first + inside % height, inside // height


def draw_grouped_order(group: int = 8) -> Picture:
    """The tiles of the first 132 programs, the rows of `a` and columns of `b` that they need, and what the L2 has.

    Raises:
        ValueError: as `grouped_order`.
    """
    from matplotlib.patches import Rectangle

    order = grouped_order(group)
    figure, axes = canvas(9.6, 5.0)
    axes.set_xlim(-14, 106)
    axes.set_ylim(68, -12)
    axes.set_aspect("equal")
    rows = {row for row, _ in order.first_wave}
    columns = {column for _, column in order.first_wave}
    for (left, top, width, height), name in (
        ((-11, 0, 8, _TILES), "a"), ((0, -9, _TILES, 6), "b"), ((0, 0, _TILES, _TILES), "out")
    ):  # fmt: skip
        axes.add_patch(Rectangle((left, top), width, height, facecolor=LIGHT, edgecolor=DARK, linewidth=1))
        axes.text(left + width / 2, top + height + 2 if name != "b" else top - 1.5, name, ha="center", va="center",
                  fontsize=11, color=DARK)  # fmt: skip
    for row in rows:
        axes.add_patch(Rectangle((-11, row), 8, 1, facecolor=ORANGE, edgecolor=DARK, linewidth=0.3, hatch="////"))
    for column in columns:
        axes.add_patch(Rectangle((column, -9), 1, 6, facecolor=PALE, edgecolor=DARK, linewidth=0.3))
    for row, column in order.first_wave:
        axes.add_patch(Rectangle((column, row), 1, 1, facecolor=BLUE, edgecolor="white", linewidth=0.25))
    _figures(axes, order, len(rows), len(columns))
    alt = (
        f"{_TILES} by {_TILES} tiles of out, computed in groups of {_plural(group, 'row')}. The first {_AT_ONCE} "
        f"programs need {_plural(len(rows), 'row')} of tiles of a and {_plural(len(columns), 'column')} of b. Over the "
        f"whole product the L2 cache has {order.hit_rate:.1%} of the tiles that are loaded, and "
        f"{order.dram_gib:.2f} GiB come from DRAM."
    )
    return finish(figure, alt, width=760)


def _figures(axes: Axes, order: GroupedOrder, rows: int, columns: int) -> None:
    from matplotlib.patches import Rectangle

    lines = (
        (f"groups of {_plural(order.group, 'row')}", True),
        (f"{_AT_ONCE} programs at a time read, in each step:", False),
        (f"{rows} + {columns} = {order.distinct} different tiles", False),
        ("", False),
        (f"the L2 has {order.hit_rate:.1%} of all loads", True),
        (f"from DRAM: {order.dram_gib:.2f} GiB", False),
    )
    for number, (text, bold) in enumerate(lines):
        axes.text(69, 6 + 5 * number, text, fontsize=10.5, color=DARK, va="center", weight="bold" if bold else "normal")
    full = 36.0
    share = full * order.misses / grouped_order(1).misses
    axes.text(69, 41, "from DRAM, against groups of 1 row:", fontsize=10.5, color=DARK, va="center")
    axes.add_patch(Rectangle((69, 44), full, 4, facecolor="white", edgecolor=GREY, linewidth=1))
    axes.add_patch(
        Rectangle((69, 44), min(share, full), 4, facecolor=ORANGE, edgecolor=DARK, linewidth=1, hatch="////")
    )
    axes.text(69, 51, f"{share / full:.0%}", fontsize=10.5, color=DARK, va="center")


def _plural(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def explore_grouped_order() -> Choices:
    """`draw_grouped_order` with a slider for the group."""
    return Choices(draw_grouped_order, {"group": (8, 1, 2, 4, 16, 32, 64)}, {"group": "rows of tiles in a group"})
