"""Drawings of the sectors of global memory and the banks of shared memory that a warp touches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
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

WARP = 32
SECTOR_BYTES = 32  # the smallest unit fetched from DRAM or L2; each sector of a 128-byte line is fetched separately
LINE_BYTES = 128
_WORD = 4
_MOST_LINES = 9


@dataclass(frozen=True)
class Access:
    """One load of a warp: thread t reads element `offset + t * stride`, of `item_bytes` bytes."""

    stride: int
    offset: int
    item_bytes: int

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The first byte of each thread's element."""
        return tuple((self.offset + thread * self.stride) * self.item_bytes for thread in range(WARP))

    @cached_property
    def sectors(self) -> tuple[int, ...]:
        """The indices of the touched sectors, in order."""
        touched = {byte // SECTOR_BYTES for start in self.starts for byte in (start, start + self.item_bytes - 1)}
        return tuple(sorted(touched))

    @property
    def fetched_bytes(self) -> int:
        return SECTOR_BYTES * len(self.sectors)

    @property
    def used_bytes(self) -> int:
        return self.item_bytes * len(set(self.starts))

    @property
    def share_used(self) -> float:
        """Bytes used divided by bytes fetched, 0 to 1."""
        return self.used_bytes / self.fetched_bytes


def warp_access(stride: int = 1, offset: int = 0, item_bytes: int = 4) -> Access:
    """Return one load by the 32 threads of a warp; the array is aligned to a sector.

    Args:
        stride: elements between the starts of neighbouring threads' elements.
        offset: elements before the first thread's.
        item_bytes: bytes that one thread loads at once: 1, 2, 4, 8 or 16.

    Raises:
        ValueError: an unsupported item size, or a stride or an offset below 0.
    """
    if item_bytes not in (1, 2, 4, 8, 16) or stride < 0 or offset < 0:
        raise ValueError("item_bytes must be 1, 2, 4, 8 or 16, and stride and offset at least 0.")
    return Access(stride, offset, item_bytes)


def draw_sectors(stride: int = 1, offset: int = 0, item_bytes: int = 4) -> Picture:
    """Draw the memory that one load of a warp touches, one 128-byte line per row. Arguments as for `warp_access`.

    Raises:
        ValueError: as for `warp_access`.
    """
    access = warp_access(stride, offset, item_bytes)
    lines = sorted({sector * SECTOR_BYTES // LINE_BYTES for sector in access.sectors})
    shown = lines if len(lines) <= _MOST_LINES else lines[: _MOST_LINES - 1]
    figure, axes = canvas(10.4, 0.44 * len(shown) + (1.75 if shown == lines else 2.05))
    words = LINE_BYTES // _WORD
    axes.set_xlim(-3.2, words + 0.4)
    axes.set_ylim(len(shown) + (2.5 if shown == lines else 3.1), -0.9)
    for row, line in enumerate(shown):
        write(axes, -0.25, row + 0.5, f"byte {line * LINE_BYTES:,}", 9.5, "right")
        _line(axes, row, line, access)
    for sector in range(LINE_BYTES // SECTOR_BYTES):
        write(axes, 8 * sector + 4, -0.4, "32 bytes", 9.5)
    below = len(shown) + 0.55
    if shown != lines:
        more = plural(len(lines) - len(shown), "more line")
        axes.text(words / 2, below, f"… and {more}", ha="center", fontsize=10, color=DARK)
        below += 0.6
    _key(axes, 0, below + 0.35, "used")
    _key(axes, 5.5, below + 0.35, "fetched, not used")
    _key(axes, 14.5, below + 0.35, "not fetched")
    said = f"{plural(len(access.sectors), 'sector')}, {100 * access.share_used:.3g} % of the bytes used"
    write(axes, words, below + 0.7, said, 12, "right", weight="bold")
    return finish(figure, _words(access), width=820)


def _line(axes: Axes, row: int, line: int, access: Access) -> None:
    words = LINE_BYTES // _WORD
    threads: dict[int, list[int]] = {}  # by word of this line
    for thread, start in enumerate(access.starts):
        for word in range(start // _WORD, (start + access.item_bytes - 1) // _WORD + 1):
            if word // words == line:
                threads.setdefault(word % words, []).append(thread)
    for word in range(words):
        used = word in threads
        fetched = (line * words + word) * _WORD // SECTOR_BYTES in access.sectors
        cell = rectangle(axes, (word, row), 1, 0.9, facecolor=BLUE if used else LIGHT if fetched else "white",
                         edgecolor=GREY, linewidth=0.5)  # fmt: skip
        if fetched and not used:
            cell.set(hatch="////")
    wide = max(1, access.item_bytes // _WORD)
    for word, readers in threads.items():
        if wide > 1 and word and threads.get(word - 1) == readers:
            continue  # one number for an element of several words
        text = str(readers[0]) + ("…" if len(readers) > 1 else "")  # several 1-byte elements share a word
        write(axes, word + wide / 2, row + 0.45, text, 9, color="white")
    for left in range(0, words, 8):
        rectangle(axes, (left, row), 8, 0.9, fill=False, edgecolor=DARK, linewidth=1.6)


def _key(axes: Axes, x: float, y: float, text: str) -> None:
    face = {"used": BLUE, "not fetched": "white"}.get(text, LIGHT)
    box = rectangle(axes, (x, y), 0.9, 0.7, facecolor=face, edgecolor=GREY, linewidth=0.8)
    if face == LIGHT:
        box.set(hatch="////")
    write(axes, x + 1.15, y + 0.35, text, 10.5, "left")


def _words(access: Access) -> str:
    apart = "side by side" if access.stride == 1 else f"{access.stride} elements apart"
    start = f", from element {access.offset} on" if access.offset else ""
    size = "a byte" if access.item_bytes == 1 else f"{access.item_bytes} bytes"
    return (
        f"One load of a warp: {WARP} threads take {size} each, {apart}{start}. They touch "
        f"{plural(len(access.sectors), 'sector')} of {SECTOR_BYTES} bytes: {plural(access.fetched_bytes, 'byte')} are "
        f"fetched, and {access.used_bytes:,} of them are used, {100 * access.share_used:.3g} %."
    )


def explore_sectors() -> Choices:
    """`draw_sectors` with sliders for the stride, the offset and the element size."""
    return Choices(
        draw_sectors,
        {"stride": (1, *range(2, 33)), "offset": tuple(range(32)), "item_bytes": (4, 1, 2, 8, 16)},
        {"stride": "stride, in elements", "offset": "offset, in elements", "item_bytes": "bytes per element"},
    )


BANKS = 32  # each delivers one 4-byte word per cycle; word w is in bank w % 32
_SMALL = 8  # banks, rows and columns of the small tile, few enough to read


@dataclass(frozen=True)
class BankAccess:
    """One load of a warp from shared memory: thread t reads word `t * step`."""

    step: int

    @cached_property
    def words(self) -> tuple[int, ...]:
        return tuple(thread * self.step for thread in range(WARP))

    @cached_property
    def per_bank(self) -> tuple[int, ...]:
        """The number of distinct words requested from each bank; a word that several threads read counts once."""
        return tuple(len({word for word in self.words if word % BANKS == bank}) for bank in range(BANKS))

    @property
    def ways(self) -> int:
        """Cycles that the load takes: the most words that one bank must deliver."""
        return max(self.per_bank)


def bank_access(step: int) -> BankAccess:
    """Return one load by the 32 threads of a warp, `step` words of 4 bytes apart.

    Down a column of `float tile[32][w]` the step is w; along a row it is 1.

    Raises:
        ValueError: a step below 0.
    """
    if step < 0:
        raise ValueError("step must be at least 0.")
    return BankAccess(step)


def draw_banks(step: int = 1) -> Picture:
    """Draw 32 threads above 32 banks, a line from each thread to its bank, and the words each bank delivers.

    Raises:
        ValueError: as for `bank_access`.
    """
    access = bank_access(step)
    figure, axes = canvas(10.4, 3.3, (-3.4, BANKS + 0.4), (7.5, -0.3))
    for y, name in ((0.5, "thread"), (4.5, "bank"), (5.7, "words")):
        write(axes, -0.3, y, name, 11, "right")
    for thread, word in enumerate(access.words):
        bank = word % BANKS
        crowded = access.per_bank[bank] > 1
        axes.plot([thread + 0.5, bank + 0.5], [1, 4], color=ORANGE if crowded else BLUE, linewidth=1.6,
                  linestyle=(0, (4, 1.5)) if crowded else "solid")  # fmt: skip
    for at in range(BANKS):
        words = access.per_bank[at]
        rectangle(axes, (at, 0), 1, 1, facecolor=LIGHT, edgecolor=GREY, linewidth=0.7)
        rectangle(axes, (at, 4), 1, 1, facecolor=ORANGE if words > 1 else PALE if words else "white",
                  edgecolor=DARK if words else GREY, linewidth=0.9, hatch="////" if words > 1 else None)  # fmt: skip
        white = {"facecolor": "white", "edgecolor": "none", "pad": 0.8} if words > 1 else None
        write(axes, at + 0.5, 0.5, str(at), 9)
        write(axes, at + 0.5, 4.5, str(at), 9, bbox=white)
        write(axes, at + 0.5, 5.7, str(words or "–"), 9.5, weight="bold" if words > 1 else "normal")
    write(axes, BANKS, 6.9, _cost(access), 12, "right", weight="bold")
    busy = sum(1 for words in access.per_bank if words)
    alt = (
        f"{WARP} threads of a warp read words that are {step} apart. They use {busy} of {BANKS} banks, and the "
        f"busiest bank must deliver {plural(access.ways, 'word')}: {_cost(access)}."
    )
    return finish(figure, alt, width=820)


def _cost(access: BankAccess) -> str:
    return "no conflict, 1 cycle" if access.ways == 1 else f"{access.ways}-way conflict, {access.ways} cycles"


def explore_banks() -> Choices:
    """`draw_banks` with a slider for the step."""
    steps = (32, *range(32), *range(33, 65))
    return Choices(draw_banks, {"step": steps}, {"step": "step, in words of 4 bytes"}, stills=(32, 33))


def draw_padded_tile(padding: int = 1) -> Picture:
    """Draw a tile without and with `padding` words per row, on a small machine with 8 banks. Numbers are banks.

    Raises:
        ValueError: a padding below 1, or one too large to draw.
    """
    if not 1 <= padding <= _SMALL:
        raise ValueError(f"padding must be 1 to {_SMALL}.")
    figure, axes = canvas(
        0.42 * (2 * _SMALL + padding + 5),
        0.42 * (_SMALL + 3.2),
        (-1, 2 * _SMALL + padding + 4),
        (_SMALL + 1.9, -1.3),
        equal=True,
    )
    _small_tile(axes, 0, _SMALL)
    _small_tile(axes, _SMALL + 3, _SMALL + padding)
    unpadded, padded = (max(_small_counts(width)) for width in (_SMALL, _SMALL + padding))
    alt = (
        f"Two tiles of {_SMALL} by {_SMALL} elements on a machine with {_SMALL} banks. With rows of {_SMALL}, all "
        f"{unpadded} words of the marked column are in one bank. With rows of {_SMALL + padding}, no bank has more "
        f"than {plural(padded, 'word')} of it."
    )
    return finish(figure, alt, width=int(38 * (2 * _SMALL + padding + 5)))


def _small_counts(width: int) -> list[int]:
    banks = [row * width % _SMALL for row in range(_SMALL)]
    return [banks.count(bank) for bank in range(_SMALL)]


def _small_tile(axes: Axes, left: int, width: int) -> None:
    marked = 2
    most = max(_small_counts(width))
    for row in range(_SMALL):
        for column in range(width):
            outside, chosen = column >= _SMALL, column == marked
            colour = (ORANGE if most > 1 else PALE) if chosen else "white" if outside else LIGHT
            cell = rectangle(axes, (left + column, row), 1, 1, facecolor=colour, edgecolor=DARK if chosen else GREY,
                             linewidth=1.6 if chosen else 0.6)  # fmt: skip
            if outside:
                cell.set(hatch="////", linestyle="--")
            white = {"facecolor": "white", "edgecolor": "none", "pad": 0.8} if outside else None
            bank = (row * width + column) % _SMALL
            write(
                axes, left + column + 0.5, row + 0.5, str(bank), 10, weight="bold" if chosen else "normal", bbox=white
            )
    said = f"the column: {most} words in one bank" if most > 1 else "the column: one word per bank"
    write(axes, left + width / 2, -0.7, f"rows of {width}", 12)
    write(axes, left + width / 2, _SMALL + 0.8, said, 11)
