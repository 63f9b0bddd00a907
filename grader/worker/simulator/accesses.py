"""The accesses of a simulated launch: which program touches which element, and what is wrong about it.

The programs of a launch run one after another here, but at the same time on a GPU. `Launch` keeps, for each element,
the last store, the first atomic and the first load. From these it finds races, and accesses outside of every tensor.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grader.words import plural

RACE, STRAY, NOTE, CAUSE, OVERFLOW = "fails_on_gpu", "illegal_access", "note", "cause", "overflow"
DOES = {"load": "loads {}", "store": "stores to {}", "atomic": "changes {} by an atomic"}
_SECTOR_BYTES, _WARP = 32, 32
_LOOKED_AT = 2  # accesses of each line and launch, for what a warp touches
_LEAST_WASTE = 4  # times the sectors that would do
_FAR_BYTES = 1 << 30  # from every tensor: such an address has no element's number
_ADD = "Add with an atomic, or let each program store to its own address and add these values in a second launch."
_LAST = 64  # observations among which the same is not kept again
_observed: list[dict[str, Any]] = []
_noted: set[tuple[Any, ...]] = set()  # stray reads and wasted sectors, which are observed once in a process


class StrayAccess(IndexError):
    """An access to memory that is not mapped, or a store to memory that is read-only."""


def observe(kind: str, message: str, line: int | None, advice: str = "") -> None:
    """Report a fact about a launch: a failure of the case (`RACE`, `STRAY`), the reason if a result is NaN
    (`CAUSE`) or wrong (`OVERFLOW`), or a remark without points (`NOTE`). The same from each launch of a loop is kept
    once.
    """
    found = {"kind": kind, "message": message, "line": line, "advice": advice}
    if found not in _observed[-_LAST:]:
        _observed.append(found)


def take_observed() -> list[dict[str, Any]]:
    """Return what was observed since the last call."""
    found = _observed[:]
    _observed.clear()
    return found


@dataclass(eq=False)
class Region:
    """The memory of one tensor, in bytes from `start` to `end`, and a shadow of it with one number per element.

    The numbers count the accesses of a launch, from 1; 0 is none.
    """

    name: str
    start: int
    end: int
    origin: int  # address of element 0, after `start` if the tensor is a view
    item: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    writable: bool
    keeps: Any = None  # the tensor, so that its memory is not freed
    parameter: str = ""  # of the kernel
    was_read: bool = False
    was_written: bool = False

    def __post_init__(self) -> None:
        self._shadows: dict[str, Any] = {}

    def shadow(self, name: str) -> Any:
        """Return the numbers of the last "store", or of the first "atomic" or "load"."""
        if name not in self._shadows:
            self._shadows[name] = np.zeros((self.end - self.start) // self.item + 1, np.int32)
        return self._shadows[name]

    def has(self, name: str) -> bool:
        return name in self._shadows

    def element(self, address: int) -> str:
        """Return an element as it is written in Python: `out[3, 4]`."""
        left, at = (address - self.origin) // self.item, [0] * len(self.strides)
        for axis in sorted(range(len(at)), key=self.strides.__getitem__, reverse=True):
            step = max(1, self.strides[axis])
            at[axis] = min(left // step, self.shape[axis] - 1)
            left -= at[axis] * step
        return f"`{self.name}[{', '.join(map(str, at or [0]))}]`"

    def beyond(self, low: int, high: int) -> str:
        """Return where the addresses from `low` to `high` leave the region: "past its end: …"."""
        side, address = ("past its end", high) if high >= self.end else ("before its start", low)
        if max(self.start - low, high - self.end) > _FAR_BYTES:
            return f"far {side.removeprefix('past ').replace('its end', 'past its end')}"
        held = 1 + sum((n - 1) * step for n, step in zip(self.shape, self.strides, strict=True))
        return f"{side}: element {(address - self.origin) // self.item:,} of {held:,}"


def rights_of(address: int) -> str:
    """Return the rights to memory, such as "rw-p", or "". An input is read-only, which its tensor does not know."""
    with open("/proc/self/maps", encoding="ascii") as maps:
        for line in maps:
            span, rights, *_ = line.split(maxsplit=2)
            low, high = (int(part, 16) for part in span.split("-"))
            if low <= address < high:
                return rights
    return ""


def region_of(name: str, tensor: Any) -> Region | None:
    """Return the region of a torch tensor, or None if it has no memory."""
    storage = tensor.untyped_storage()
    if not storage.nbytes() or not tensor.numel():
        return None
    start, item = storage.data_ptr(), tensor.element_size()
    shape = tuple(tensor.shape)
    writable = "w" in rights_of(start)
    return Region(
        name, start, start + storage.nbytes(), tensor.data_ptr(), item, shape, tensor.stride(), writable, tensor
    )


class Launch:
    """The accesses of one launch. Call `begin` for each program, in the order in which they run."""

    def __init__(self, kernel: str, grid: Sequence[int], regions: Sequence[Region]) -> None:
        self.kernel, self.grid, self.regions = kernel, tuple(grid), regions
        self._lines: list[int | None] = [None]  # by access
        self._starts: list[int] = []  # the first access of each program
        self._points: list[tuple[int, ...]] = []
        self._said: set[tuple[Any, ...]] = set()
        self._released: dict[int, Any] = {}  # by address: up to which access each program is known there
        self._known: Any = None  # the same, for the current program
        self._looked: dict[tuple[Any, ...], int] = {}

    def begin(self, point: Sequence[int]) -> None:
        self._points.append(tuple(point))
        self._starts.append(len(self._lines))
        self._known = None

    def region(self, low: int, high: int) -> Region | None:
        """Return the region that holds all bytes from `low` up to `high`."""
        return next((each for each in self.regions if each.start <= low and high <= each.end), None)

    def number(self, line: int | None) -> int:
        """Count one access, and return its number."""
        self._lines.append(line)
        return len(self._lines) - 1

    def say_stray(self, low: int, high: int, stores: bool, line: int | None) -> str:
        """Report an access outside of every tensor, once per line, and return the sentence."""
        near = min(self.regions, key=lambda each: max(each.start - low, high - each.end), default=None)
        if near is None:
            return f"`{self.kernel}` uses an address, and got no tensor."
        what = "written" if stores else "read"
        sentence = f"`{near.name}` is {what} {near.beyond(low, high)}."
        if ("stray", near.name, line) not in self._said:
            self._said.add(("stray", near.name, line))
            advice = "Pass a mask that is false for elements outside of the tensor."
            if stores:
                observe(STRAY, sentence, line, advice)
            elif (self.kernel, near.name, line) not in _noted:
                _noted.add((self.kernel, near.name, line))
                why = f"Even if these values are masked out later, the memory is not part of `{near.name}`"
                observe(NOTE, f"{sentence} {why}, and a GPU may stop the kernel. {advice}", line)
        return sentence

    def say_unwritten(self, region: Region, line: int | None) -> None:
        """Report that a kernel got what `torch.empty` left in memory."""
        if ("unwritten", region.name) not in self._said:
            self._said.add(("unwritten", region.name))
            said = (
                f"Line {line} reads `{region.name}` before anything was written there: `torch.empty` returns whatever "
            )
            said += "was in memory, here NaN. Make it with `torch.zeros`, or store to it first."
            observe(CAUSE, said, line)

    def look_at_sectors(self, region: Region, addresses: Any, item: int, stores: bool, line: int | None) -> None:
        """Report a block whose elements lie far apart in memory at equal distances, so that warps waste sectors.

        The compiler gives neighbouring threads neighbouring elements, if a block has them along any axis. A line that
        wastes none in an earlier case is not reported: the case's layout is the reason then.
        """
        key = ("sectors", line)
        self._looked[key] = self._looked.get(key, 0) + 1
        if self._looked[key] > _LOOKED_AT or addresses.size < _WARP or (self.kernel, *key) in _noted:
            return
        apart = np.unique(addresses)
        steps = np.diff(apart)
        if apart.size >= _WARP and (steps == item).all():
            _noted.add((self.kernel, *key))
        if apart.size < _WARP or steps[0] < _LEAST_WASTE * item or (steps != steps[0]).any():
            return
        touched = min(_WARP, -(-_WARP * int(steps[0]) // _SECTOR_BYTES))
        needed = max(1, _WARP * item // _SECTOR_BYTES)
        _noted.add((self.kernel, *key))
        what = "store" if stores else "load"
        said = f"Each warp's {what} touches {plural(touched, 'sector')} of `{region.name}`, and {needed} would do: the "
        said += (
            f"elements of a block are {plural(int(steps[0]), 'byte')} apart. Let a block run along elements that are "
        )
        observe(NOTE, f"{said}next to each other in memory.", line)

    def load(self, region: Region, units: Any, line: int | None) -> None:
        """Record a load of some elements of a region that may be written."""
        number = self.number(line)
        region.was_read = True
        for kind in ("store", "atomic"):
            if region.has(kind):
                self._race(region, units, region.shadow(kind)[units], "load", kind, number)
        _keep_first(region.shadow("load"), units, number)

    def store(self, region: Region, units: Any, changes: Any, line: int | None) -> None:
        """Record a store. It races only for elements that it `changes`: the others already held the value."""
        number = self.number(line)
        region.was_written = True
        last = region.shadow("store")
        for kind in ("store", "atomic", "load"):
            if region.has(kind) and changes.any():
                self._race(region, units[changes], region.shadow(kind)[units[changes]], "store", kind, number)
        kept = changes | (last[units] != 0)
        last[units[kept]] = number

    def atomic(self, region: Region, units: Any, line: int | None, adds: bool) -> None:
        """Record an atomic."""
        number = self.number(line)
        region.was_written = True
        region.was_read |= adds
        for kind in ("store", "load"):
            if region.has(kind):
                self._race(region, units, region.shadow(kind)[units], "atomic", kind, number)
        _keep_first(region.shadow("atomic"), units, number)

    def release(self, address: int) -> None:
        """Let programs that acquire this address later see all accesses up to now."""
        clock = self._released.setdefault(address, np.zeros(math.prod(self.grid), np.int64))
        if self._known is not None:
            np.maximum(clock, self._known, out=clock)
        clock[len(self._starts) - 1] = len(self._lines) - 1

    def clock(self, address: int) -> Any:
        """Return what is released at an address, to pass to `acquire` when the program uses the value."""
        clock = self._released.get(address)
        return None if clock is None else clock.copy()

    def acquire(self, clock: Any) -> None:
        """Order all accesses in the clock before the rest of the current program."""
        if clock is not None:
            self._known = clock if self._known is None else np.maximum(clock, self._known)

    def say_overlap(self, region: Region, address: int, line: int | None) -> None:
        """Report that two elements of one block went to one address with different values."""
        if ("overlap", line) not in self._said:
            self._said.add(("overlap", line))
            sentence = f"One `tl.store` writes several different values to {region.element(address)}"
            observe(RACE, f"{sentence}: which one is left is undefined.", line, "Give each element its own address.")

    def _race(self, region: Region, units: Any, others: Any, now: str, then: str, number: int) -> None:
        """Report a race between the access `number` and the first of the `others` that another program made."""
        start = self._starts[-1]
        if not ((others > 0) & (others < start)).any() or ("race", region.name) in self._said:
            return
        found = (others > 0) & (others < start)
        if self._known is not None:
            programs = np.searchsorted(self._starts, others, side="right") - 1
            found &= others > self._known[programs]
        if not found.any():
            return
        self._said.add(("race", region.name))
        at = np.flatnonzero(found)[0]
        self._say_race(region, region.start + int(units[at]) * region.item, int(others[at]), now, then, number)

    def _say_race(self, region: Region, address: int, other: int, now: str, then: str, number: int) -> None:
        element, lines = region.element(address), (self._lines[other], self._lines[number])
        first, second = self._program(other), self._program(number)
        same = f"both in line {lines[1]}" if lines[0] == lines[1] else f"in line {lines[0]} and line {lines[1]}"
        if now == then == "store":
            said = f"A race: program {first} and program {second} both store to {element}, {same}"
            end = "On a GPU they run at the same time: if several store to one address, only one value is left."
        else:
            both = f"program {first} {DOES[then].format(element)} and program {second} {DOES[now].format('it')}"
            said = f"A race: {both}, {same}"
            end = "On a GPU they run at the same time, in no fixed order."
        observe(RACE, f"{said}. {end}", lines[1], _ADD)

    def _program(self, number: int) -> str:
        point = self._points[bisect.bisect_right(self._starts, number) - 1]
        used = [index for index, length in enumerate(self.grid) if length > 1 or index == 0]
        return str(point[0]) if used == [0] else str(point[: used[-1] + 1])


def _keep_first(shadow: Any, units: Any, number: int) -> None:
    seen = shadow[units]
    shadow[units] = np.where(seen == 0, number, seen)
