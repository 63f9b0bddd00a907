"""Which 32-byte sectors of memory a warp touches: what is fetched, and what of it is used."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from grader.explore.choices import Choices
from grader.explore.picture import BLUE, DARK, GREY, LIGHT, Picture, canvas, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LINE_BYTES", "SECTOR_BYTES", "WARP", "Access", "draw_sectors", "explore_sectors", "warp_access"]

WARP = 32
SECTOR_BYTES = 32  # the least that is fetched from DRAM or L2; of a 128-byte line, each sector is fetched or not
LINE_BYTES = 128
_WORD = 4
_MOST_LINES = 9


@dataclass(frozen=True)
class Access:
    """One load of a warp: thread t takes element `offset + t * stride`, of `item_bytes` bytes."""

    stride: int
    offset: int
    item_bytes: int

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The first byte of each thread's element."""
        return tuple((self.offset + thread * self.stride) * self.item_bytes for thread in range(WARP))

    @cached_property
    def sectors(self) -> tuple[int, ...]:
        """The numbers of the sectors that are touched, in order."""
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
        """Bytes used over bytes fetched, 0 to 1."""
        return self.used_bytes / self.fetched_bytes


def warp_access(stride: int = 1, offset: int = 0, item_bytes: int = 4) -> Access:
    """One load by the 32 threads of a warp; the array begins where a sector begins.

    Args:
        stride: elements from one thread's element to the next thread's.
        offset: elements before the first.
        item_bytes: 1, 2, 4, 8 or 16: what one thread loads at once.

    Raises:
        ValueError: a size that no load has, or a stride or an offset below 0.
    """
    if item_bytes not in (1, 2, 4, 8, 16) or stride < 0 or offset < 0:
        raise ValueError("item_bytes must be 1, 2, 4, 8 or 16, and stride and offset at least 0.")
    return Access(stride, offset, item_bytes)


def draw_sectors(stride: int = 1, offset: int = 0, item_bytes: int = 4) -> Picture:
    """Memory, a line of 128 bytes a row, under one load of a warp. Numbers are threads. Arguments as `warp_access`.

    Raises:
        ValueError: as `warp_access`.
    """
    access = warp_access(stride, offset, item_bytes)
    lines = sorted({sector * SECTOR_BYTES // LINE_BYTES for sector in access.sectors})
    shown = lines if len(lines) <= _MOST_LINES else lines[: _MOST_LINES - 1]
    figure, axes = canvas(10.4, 0.44 * len(shown) + (1.75 if shown == lines else 2.05))
    words = LINE_BYTES // _WORD
    axes.set_xlim(-3.2, words + 0.4)
    axes.set_ylim(len(shown) + (2.5 if shown == lines else 3.1), -0.9)
    for row, line in enumerate(shown):
        axes.text(-0.25, row + 0.5, f"byte {line * LINE_BYTES:,}", ha="right", va="center", fontsize=9.5, color=DARK)
        _line(axes, row, line, access)
    for sector in range(LINE_BYTES // SECTOR_BYTES):
        axes.text(8 * sector + 4, -0.4, "32 bytes", ha="center", va="center", fontsize=9.5, color=DARK)
    below = len(shown) + 0.55
    if shown != lines:
        axes.text(words / 2, below, f"… and {len(lines) - len(shown)} lines more", ha="center", fontsize=10, color=DARK)
        below += 0.6
    _key(axes, 0, below + 0.35, "used")
    _key(axes, 5.5, below + 0.35, "fetched, not used")
    _key(axes, 14.5, below + 0.35, "not fetched")
    said = f"{_sectors(access)}, {100 * access.share_used:.3g} % of the bytes used"
    axes.text(words, below + 0.7, said, ha="right", va="center", fontsize=12, weight="bold", color=DARK)
    return finish(figure, _words(access), width=820)


def _line(axes: Axes, row: int, line: int, access: Access) -> None:
    from matplotlib.patches import Rectangle

    words = LINE_BYTES // _WORD
    threads: dict[int, list[int]] = {}  # of each word of this line
    for thread, start in enumerate(access.starts):
        for word in range(start // _WORD, (start + access.item_bytes - 1) // _WORD + 1):
            if word // words == line:
                threads.setdefault(word % words, []).append(thread)
    for word in range(words):
        used = word in threads
        fetched = (line * words + word) * _WORD // SECTOR_BYTES in access.sectors
        cell = Rectangle((word, row), 1, 0.9, facecolor=BLUE if used else LIGHT if fetched else "white",
                         edgecolor=GREY, linewidth=0.5)  # fmt: skip
        if fetched and not used:
            cell.set(hatch="////")
        axes.add_patch(cell)
    wide = max(1, access.item_bytes // _WORD)
    for word, readers in threads.items():
        if wide > 1 and word and threads.get(word - 1) == readers:
            continue  # one number for an element of several words
        text = str(readers[0]) + ("…" if len(readers) > 1 else "")  # of bytes, several share a word
        axes.text(word + wide / 2, row + 0.45, text, ha="center", va="center", color="white", fontsize=9)
    for left in range(0, words, 8):
        axes.add_patch(Rectangle((left, row), 8, 0.9, fill=False, edgecolor=DARK, linewidth=1.6))


def _key(axes: Axes, x: float, y: float, text: str) -> None:
    from matplotlib.patches import Rectangle

    face = {"used": BLUE, "not fetched": "white"}.get(text, LIGHT)
    box = Rectangle((x, y), 0.9, 0.7, facecolor=face, edgecolor=GREY, linewidth=0.8)
    if face == LIGHT:
        box.set(hatch="////")
    axes.add_patch(box)
    axes.text(x + 1.15, y + 0.35, text, va="center", fontsize=10.5, color=DARK)


def _sectors(access: Access) -> str:
    return f"{len(access.sectors)} sector{'s' if len(access.sectors) > 1 else ''}"


def _words(access: Access) -> str:
    apart = "side by side" if access.stride == 1 else f"{access.stride} elements apart"
    start = f", from element {access.offset} on" if access.offset else ""
    size = "a byte" if access.item_bytes == 1 else f"{access.item_bytes} bytes"
    return (
        f"One load of a warp: {WARP} threads take {size} each, {apart}{start}. They touch {_sectors(access)} of "
        f"{SECTOR_BYTES} bytes: {access.fetched_bytes:,} bytes are fetched, and {access.used_bytes:,} of them used, "
        f"{100 * access.share_used:.3g} %."
    )


def explore_sectors() -> Choices:
    """`draw_sectors` with a slider for stride, offset and the size of an element."""
    return Choices(
        draw_sectors,
        {"stride": (1, *range(2, 33)), "offset": tuple(range(32)), "item_bytes": (4, 1, 2, 8, 16)},
        {"stride": "stride, in elements", "offset": "offset, in elements", "item_bytes": "bytes of an element"},
    )
