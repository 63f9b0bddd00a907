"""Drawings of a tiled matrix product: the loop along K, a thread's sums, pipelines, waves of tiles, and L2 hits."""

from __future__ import annotations

import functools
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grader.explore.drawing.displays import (
    BLUE,
    DARK,
    GREY,
    LIGHT,
    ORANGE,
    PALE,
    Choices,
    Picture,
    canvas,
    finish,
    rectangle,
    write,
)
from grader.words import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DOWN, _ACROSS, _ALONG = 3, 4, 5  # tiles of the small product along M, N and K
_ROW, _COLUMN = 1, 2  # of the tile that is drawn
_COPY, _MULTIPLY = 3, 1  # a tile's copy from DRAM takes this many times as long as its multiplication
_ROUNDS = 8
_MOST_STAGES = 6
_MOST_SUMS = 8  # of a thread, along each axis


def draw_tile_loop(step: int = 2) -> Picture:
    """Draw one program's work: a row of tiles of `a` times a column of tiles of `b`, at one step along K.

    Raises:
        ValueError: a step outside the small product.
    """
    if not 0 <= step < _ALONG:
        raise ValueError(f"step must be 0 to {_ALONG - 1}.")
    figure, axes = canvas(9.2, 6.0, (-8.4, 7.9), (4.6, -6.2), equal=True)
    for row in range(_DOWN):
        for k in range(_ALONG):
            _draw_tile(axes, k - _ALONG - 0.8, row, row == _ROW, k == step, k < step)
        for column in range(_ACROSS):
            _cell(axes, column, row, BLUE if (row, column) == (_ROW, _COLUMN) else LIGHT, "")
    for k in range(_ALONG):
        for column in range(_ACROSS):
            _draw_tile(axes, column, k - _ALONG - 0.6, column == _COLUMN, k == step, k < step)
    write(axes, _COLUMN + 0.5, _ROW + 0.5, "+=", 15, color="white", weight="bold")
    for x, y, text in (
        (-_ALONG / 2 - 0.8, _DOWN + 0.45, "a, M × K"),
        (_ACROSS + 0.25, -_ALONG / 2 - 0.6, "b, K × N"),
        (_ACROSS / 2, _DOWN + 0.45, "out, M × N"),
    ):
        write(axes, x, y, text, 12, "left" if x > _ACROSS else "center")
    said = f"step {step}: the product of the two marked tiles is added to the tile of out"
    write(axes, -_ALONG - 0.8, _DOWN + 1.2, said, 11.5, "left")
    alt = (
        f"A tiled product: a has {_DOWN} by {_ALONG} tiles, b {_ALONG} by {_ACROSS} and out {_DOWN} by {_ACROSS}. The "
        f"tile of out in row {_ROW} and column {_COLUMN} is computed. The loop moves along row {_ROW} of a's tiles and "
        f"down column {_COLUMN} of b's. It now multiplies tile {step} of each; {step} of {_ALONG} are done."
    )
    return finish(figure, alt, width=700)


def _draw_tile(axes: Axes, x: float, y: float, wanted: bool, now: bool, done: bool) -> None:
    colour = LIGHT if not wanted else ORANGE if now else PALE
    _cell(axes, x, y, colour, "////" if wanted and now else "", "done" if wanted and done else "")


def _cell(axes: Axes, x: float, y: float, colour: str, hatch: str, text: str = "") -> None:
    edge = GREY if colour == LIGHT else DARK
    rectangle(axes, (x, y), 1, 1, facecolor=colour, edgecolor=edge, linewidth=0.9, hatch=hatch or None)
    if text:
        write(axes, x + 0.5, y + 0.5, text, 9.5)


def draw_thread_tile(each: int = 4) -> Picture:
    """Draw one step along K of a thread with `each` × `each` sums: what it reads, and what it adds to.

    Raises:
        ValueError: no sums, or too many to draw.
    """
    if not 1 <= each <= _MOST_SUMS:
        raise ValueError(f"each must be 1 to {_MOST_SUMS}.")
    figure, axes = canvas(8.4, 0.62 * each + 2.6, (-4.2, each + 5.4), (each + 1.3, -2.6), equal=True)
    for i in range(each):
        _cell(axes, -1.6, i, ORANGE, "////")
        _cell(axes, i, -1.6, ORANGE, "////")
        for j in range(each):
            _cell(axes, j, i, PALE, "", "+=")
    write(axes, -1.9, each / 2, "read from\ntile_a", 11.5, "right")
    write(axes, each + 0.3, -1.1, "read from tile_b", 11.5, "left")
    write(axes, each + 0.3, each / 2, "sums,\nin registers", 11.5, "left")
    reads, products = 2 * each, each * each
    said = f"{plural(reads, 'read')} of shared memory for {plural(products, 'multiplication')}"
    write(axes, -1.6, each + 0.8, said, 11.5, "left")
    alt = (
        f"One step along K of a thread with {each} by {each} sums in registers. It reads {plural(each, 'value')} of a "
        f"column of tile_a and as many of a row of tile_b, {reads} in all. Each value of the column is multiplied by "
        f"each value of the row and added to the sum where they meet: {plural(products, 'multiplication')}."
    )
    return finish(figure, alt, width=560)


@dataclass(frozen=True)
class Pipeline:
    """The times of each step's copy and product, as (start, end). A step uses buffer step % stages."""

    stages: int
    copies: tuple[tuple[int, int], ...]
    products: tuple[tuple[int, int], ...]

    @property
    def length(self) -> int:
        return self.products[-1][1]

    @property
    def busy(self) -> float:
        """The share of the time that the tensor cores are busy."""
        return sum(end - start for start, end in self.products) / self.length


def pipeline(stages: int) -> Pipeline:
    """Schedule eight steps along K with `stages` buffers. A copy waits for a free buffer and lasts 3 products.

    Raises:
        ValueError: no stages, or too many to draw.
    """
    if not 1 <= stages <= _MOST_STAGES:
        raise ValueError(f"stages must be 1 to {_MOST_STAGES}.")
    copies: list[tuple[int, int]] = []
    products: list[tuple[int, int]] = []
    for step in range(_ROUNDS):
        free = products[step - stages][1] if step >= stages else 0
        issued = copies[-1][0] + 1 if copies else 0  # copies are issued one after the other and overlap in flight
        start = max(free, issued)
        copies.append((start, start + _COPY))
        begin = max(copies[-1][1], products[-1][1] if products else 0)
        products.append((begin, begin + _MULTIPLY))
    return Pipeline(stages, tuple(copies), tuple(products))


def draw_pipeline(stages: int = 3) -> Picture:
    """Draw shared memory over time: the copies that arrive in each buffer, and when the tensor cores are busy.

    Raises:
        ValueError: as for `pipeline`.
    """
    found = pipeline(stages)
    longest = pipeline(1).length
    figure, axes = canvas(10.2, 0.55 * stages + 2.1, (-6.6, longest + 0.6), (stages + 3.0, -0.5))
    for buffer in range(stages):
        write(axes, -0.3, buffer + 0.5, f"buffer {buffer}", 11, "right")
    write(axes, -0.3, stages + 0.9, "tensor cores", 11, "right")
    for step, (copy, product) in enumerate(zip(found.copies, found.products, strict=True)):
        buffer = step % stages
        _bar(axes, copy, buffer, ORANGE, f"copy {step}", "////")
        if product[0] > copy[1]:
            _bar(axes, (copy[1], product[0]), buffer, PALE, "", "")
        _bar(axes, product, buffer, BLUE, str(step), "")
        _bar(axes, product, stages + 0.4, BLUE, str(step), "")
    said = f"{plural(stages, 'stage')}: {found.length} units of time; tensor cores busy in {found.busy:.0%} of them"
    write(axes, 0, stages + 2.2, said, 11.5, "left")
    alt = (
        f"Shared memory over time, with {plural(stages, 'stage')}. The tiles of each of eight steps along K are copied "
        f"in, which takes {_COPY} units of time, and multiplied, which takes {_MULTIPLY}. Everything is done after "
        f"{found.length} units; the tensor cores are busy in {found.busy:.0%} of them."
    )
    return finish(figure, alt, width=760)


def _bar(axes: Axes, span: tuple[int, int], y: float, colour: str, text: str, hatch: str, size: float = 9.5) -> None:
    start, end = span
    rectangle(axes, (start, y + 0.08), end - start, 0.84, facecolor=colour, edgecolor=DARK, linewidth=0.8,
              hatch=hatch or None)  # fmt: skip
    if text:
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8} if hatch else None
        write(axes, (start + end) / 2, y + 0.5, text, size, color="white" if colour == BLUE else DARK, bbox=box)


def explore_pipeline() -> Choices:
    """`draw_pipeline` with a slider for the number of stages."""
    return Choices(draw_pipeline, {"stages": (3, 1, 2, 4, 5)}, {"stages": "stages"}, stills=(1, 4))


_FILL, _MAIN, _STORE = 1, 4, 1  # a tile's prologue, main loop and epilogue, in units of time
_MOST_TILES, _MOST_SMS = 24, 8


@dataclass(frozen=True)
class Schedule:
    """The start of each tile's prologue, main loop and epilogue: tile t runs on SM t % `sms`, after tile t - `sms`."""

    sms: int
    persistent: bool
    starts: tuple[tuple[int, int, int], ...]

    @property
    def length(self) -> int:
        return max(store for _, _, store in self.starts) + _STORE

    @property
    def busy(self) -> float:
        """The share of the time that the tensor cores are busy, over all SMs."""
        return len(self.starts) * _MAIN / (self.length * self.sms)


def schedule(tiles: int, sms: int, persistent: bool) -> Schedule:
    """Schedule `tiles` on `sms`, one at a time per SM. In a persistent kernel, a tile is stored while the next loads.

    Raises:
        ValueError: no tiles or no SMs, or too many to draw.
    """
    if not (1 <= tiles <= _MOST_TILES and 1 <= sms <= _MOST_SMS):
        raise ValueError(f"tiles must be 1 to {_MOST_TILES}, and sms 1 to {_MOST_SMS}.")
    starts: list[tuple[int, int, int]] = []
    for tile in range(tiles):
        before = starts[tile - sms][2] if tile >= sms else -_STORE  # the store of the tile before
        fill = max(0, before if persistent else before + _STORE)
        starts.append((fill, fill + _FILL, fill + _FILL + _MAIN))
    return Schedule(sms, persistent, tuple(starts))


def draw_waves(tiles: int = 10, sms: int = 4) -> Picture:
    """Draw each SM's tiles over time: one program per tile above, a persistent kernel below.

    Raises:
        ValueError: as for `schedule`.
    """
    plain, persistent = schedule(tiles, sms, False), schedule(tiles, sms, True)
    figure, axes = canvas(10.2, 0.9 * sms + 2.2, (-2.4, plain.length + 0.4), (2 * sms + 3.9, -1.2))
    for found, top, name in ((plain, 0.0, "one program per tile"), (persistent, sms + 2.3, "persistent")):
        said = f"{name}: {found.length} units of time; tensor cores busy in {found.busy:.0%} of them"
        write(axes, 0, top - 0.55, said, 11.5, "left")
        for sm in range(sms):
            write(axes, -0.2, top + sm + 0.5, f"SM {sm}", 11, "right")
        for tile, (fill, main, store) in enumerate(found.starts):
            row = top + tile % sms
            for start, colour, hatch in ((store, ORANGE, "////"), (fill, PALE, "....")):  # these two may overlap
                overlaps = found.persistent and (tile + sms < tiles if start == store else tile >= sms)
                upper = row + 0.5 if overlaps and start == store else row + 0.08
                rectangle(axes, (start, upper), 1, 0.42 if overlaps else 0.84, facecolor=colour, edgecolor=DARK,
                          linewidth=0.8, hatch=hatch)  # fmt: skip
            _bar(axes, (main, store), row, BLUE, f"tile {tile}", "")
    legend = "dotted: prologue (the first loads)    blue: main loop    hatched: epilogue (the store)"
    write(axes, 0, 2 * sms + 2.95, legend, 10.5, "left")
    alt = (
        f"{plural(tiles, 'tile')} on {plural(sms, 'SM')}, in {plural(-(-tiles // sms), 'wave')}. With one program per "
        f"tile, each tile's prologue waits for the epilogue of the tile before, and all takes {plain.length} units of "
        f"time; the tensor cores are busy in {plain.busy:.0%} of them. In the persistent kernel the two overlap: "
        f"{persistent.length} units, busy in {persistent.busy:.0%}."
    )
    return finish(figure, alt, width=760)


_TILES = 64  # along each axis of `out`, as at 8192 × 8192 with tiles of 128 × 128
_STEPS = 128  # along K, as at 8192 with steps of 64
_TILE_KIB = 16  # 128 × 64 float16
_AT_ONCE = 132  # programs that run together, one on each SM of an H100 or H200
_CACHE_MIB = 50  # their L2


@dataclass(frozen=True)
class GroupedOrder:
    """A product of 8192 × 8192 matrices whose programs compute tiles in groups of `group` rows. Sizes are in tiles.

    `first_wave` has the (row, column) of each tile in the first wave. `loads` counts the tiles of `a` and `b` that
    programs load, and `misses` those that come from DRAM. `distinct` is the number of different tiles that the first
    wave reads per step along K.
    """

    group: int
    first_wave: tuple[tuple[int, int], ...]
    distinct: int
    loads: int
    misses: int

    @property
    def hit_rate(self) -> float:
        """The share of the loads that hit in L2."""
        return 1 - self.misses / self.loads

    @property
    def dram_gib(self) -> float:
        """GiB read from DRAM."""
        return self.misses * _TILE_KIB / (1 << 20)


@functools.cache
def grouped_order(group: int) -> GroupedOrder:
    """Simulate an LRU L2 cache, with 132 programs at a time, all at the same step along K.

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
    """Return the row and column of the tile that a program computes."""
    first = number // (group * _TILES) * group
    height = min(_TILES - first, group)
    inside = number % (group * _TILES)
    return first + inside % height, inside // height


def draw_grouped_order(group: int = 8) -> Picture:
    """Draw the tiles of the first 132 programs, the tiles of `a` and `b` they read, and the L2 hit rate.

    Raises:
        ValueError: as for `grouped_order`.
    """
    order = grouped_order(group)
    figure, axes = canvas(9.6, 5.0, (-14, 106), (68, -12), equal=True)
    rows = {row for row, _ in order.first_wave}
    columns = {column for _, column in order.first_wave}
    for (left, top, width, height), name in (
        ((-11, 0, 8, _TILES), "a"), ((0, -9, _TILES, 6), "b"), ((0, 0, _TILES, _TILES), "out")
    ):  # fmt: skip
        rectangle(axes, (left, top), width, height, facecolor=LIGHT, edgecolor=DARK, linewidth=1)
        write(axes, left + width / 2, top + height + 2 if name != "b" else top - 1.5, name, 11)
    for row in rows:
        rectangle(axes, (-11, row), 8, 1, facecolor=ORANGE, edgecolor=DARK, linewidth=0.3, hatch="////")
    for column in columns:
        rectangle(axes, (column, -9), 1, 6, facecolor=PALE, edgecolor=DARK, linewidth=0.3)
    for row, column in order.first_wave:
        rectangle(axes, (column, row), 1, 1, facecolor=BLUE, edgecolor="white", linewidth=0.25)
    _figures(axes, order, len(rows), len(columns))
    alt = (
        f"{_TILES} by {_TILES} tiles of out, computed in groups of {plural(group, 'row')}. The first {_AT_ONCE} "
        f"programs need {plural(len(rows), 'row')} of tiles of a and {plural(len(columns), 'column')} of b. Over the "
        f"whole product {order.hit_rate:.1%} of the tile loads hit in L2, and {order.dram_gib:.2f} GiB come from DRAM."
    )
    return finish(figure, alt, width=760)


def _figures(axes: Axes, order: GroupedOrder, rows: int, columns: int) -> None:
    lines = (
        (f"groups of {plural(order.group, 'row')}", True),
        (f"{_AT_ONCE} programs at a time read, per step:", False),
        (f"{rows} + {columns} = {plural(order.distinct, 'different tile')}", False),
        ("", False),
        (f"{order.hit_rate:.1%} of all loads hit in L2", True),
        (f"from DRAM: {order.dram_gib:.2f} GiB", False),
    )
    for number, (text, bold) in enumerate(lines):
        write(axes, 69, 6 + 5 * number, text, 10.5, "left", weight="bold" if bold else "normal")
    full = 36.0
    share = full * order.misses / grouped_order(1).misses
    write(axes, 69, 41, "from DRAM, relative to groups of 1 row:", 10.5, "left")
    rectangle(axes, (69, 44), full, 4, facecolor="white", edgecolor=GREY, linewidth=1)
    rectangle(axes, (69, 44), min(share, full), 4, facecolor=ORANGE, edgecolor=DARK, linewidth=1, hatch="////")
    write(axes, 69, 51, f"{share / full:.0%}", 10.5, "left")


def explore_grouped_order() -> Choices:
    """`draw_grouped_order` with a slider for the group size."""
    groups = (8, 1, 2, 4, 16, 32, 64)
    return Choices(draw_grouped_order, {"group": groups}, {"group": "rows of tiles per group"}, stills=(1, 8))


_FLIGHT, _APART, _USE, _WRITE = 4, 1, 2, 4  # units of time: a copy's flight, its distance from the one before, …
_RING_TILES, _RING_STEPS = 2, 6


@dataclass(frozen=True)
class Ring:
    """When each step's copy starts and arrives and its multiplication starts and ends, and when each tile is stored."""

    stages: int
    steps: tuple[tuple[int, int, int, int], ...]
    stores: tuple[tuple[int, int], ...]

    @property
    def length(self) -> int:
        return self.stores[-1][1]

    @property
    def busy(self) -> float:
        """The share of the time that the tensor cores are busy."""
        return len(self.steps) * _USE / self.length


def ring(stages: int) -> Ring:
    """Run a producer and a consumer on two tiles of six steps. The producer waits for an empty stage, nothing else.

    Raises:
        ValueError: `stages` is not 1 to 6.
    """
    if not 1 <= stages <= _RING_STEPS:
        raise ValueError(f"stages must be 1 to {_RING_STEPS}.")
    steps: list[tuple[int, int, int, int]] = []
    stores: list[tuple[int, int]] = []
    now = 0  # of the consumer
    for step in range(_RING_TILES * _RING_STEPS):
        start = max(steps[step - stages][3] if step >= stages else 0, steps[-1][0] + _APART if steps else 0)
        arrival = start + _FLIGHT
        begin = max(now, arrival)
        now = begin + _USE
        steps.append((start, arrival, begin, now))
        if step % _RING_STEPS == _RING_STEPS - 1:
            stores.append((now, now + _WRITE))
            now += _WRITE
    return Ring(stages, tuple(steps), tuple(stores))


def draw_ring(stages: int = 4) -> Picture:
    """Draw the ring of stages over time: copies in flight, full stages, multiplications, and the stores of two tiles.

    Raises:
        ValueError: as for `ring`.
    """
    found = ring(stages)
    figure, axes = canvas(11.0, 0.5 * stages + 2.0, (-6.0, found.length + 0.6), (stages + 3.0, -0.6))
    for stage in range(stages):
        write(axes, -0.3, stage + 0.5, f"stage {stage}", 11, "right")
    write(axes, -0.3, stages + 0.8, "consumer", 11, "right")
    for step, (start, arrival, begin, end) in enumerate(found.steps):
        row = step % stages
        _bar(axes, (start, arrival), row, ORANGE, "", "////")
        _bar(axes, (arrival, begin), row, PALE, "", "")
        for y in (row, stages + 0.3):
            _bar(axes, (begin, end), y, BLUE, str(step), "", 10)
    for store in found.stores:
        _bar(axes, store, stages + 0.3, "#D6EFD8", "", "....")
    legend = "hatched: copy in flight    pale: full, waiting    blue: multiplied    dotted: the tile's store"
    write(axes, 0, stages + 2.3, legend, 10.5, "left")
    alt = (
        f"A ring of {stages} stages over time, for two tiles of {_RING_STEPS} steps. A copy into a stage starts as "
        "soon as the stage is empty, so the second tile's copies start while the first tile is stored. Everything is "
        f"done after {found.length} units of time; the tensor cores are busy in {found.busy:.0%} of them."
    )
    return finish(figure, alt, width=860)
