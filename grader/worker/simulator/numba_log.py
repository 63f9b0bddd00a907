"""Log what the threads of a simulated Numba kernel do to arrays, and observe races and wasted memory transactions.

Two threads race for an element if one of them stores to it without an atomic, and no barrier lies between them. The
simulator runs threads in turn, so it hides that.

The first warp of each launch is watched: sectors of global memory, banks of shared memory. Its threads run one after
another here, so the k-th access of each lane in a line counts as one request, if all lanes make equally many. A
wasteful line gets a remark, without points.
"""

from __future__ import annotations

import functools
import linecache
import math
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from grader.words import plural
from grader.worker.simulator import tally
from grader.worker.simulator.accesses import DOES, NOTE, RACE, observe

WARP = 32
_SHARED = re.compile(r"\b(\w+)\s*=\s*\w*\.?shared\.array\b")
_LOGGED_BLOCKS = 64  # of a launch: only some log shared memory, because that takes long …
_FIRST_BLOCKS, _LAST_BLOCKS = 16, 8  # … these, and others without a regular distance, which a kernel may have, too

_GOLDEN_RATIO = (5**0.5 - 1) / 2  # its multiples are spread evenly, without a period

# Kept for each element: the last store, the last two threads that loaded it, and the last two atomics.
_SLOTS = ("store", "load", "load", "atomic", "atomic")
_CONFLICTS = {"load": (0, 3, 4), "store": (0, 1, 2, 3, 4), "atomic": (0, 1, 2)}

_REQUESTS = 4  # of each line
_LONG_LOOP = 16  # accesses of a lane in one line
_SECTOR_BYTES, _BANKS, _BANK_BYTES = 32, 32, 4
_MOST_SECTORS, _LEAST_WASTE, _MOST_IN_A_BANK = 24, 3, 8  # from here on, they are worth a remark
_settled: set[tuple[int, str, str]] = set()  # places that were reported, or that waste nothing in an earlier launch


class Who(NamedTuple):
    """A thread between two barriers: its block, its number there, and the barriers of block and warp before it."""

    block: tuple[int, ...]
    thread: int
    barriers: int = 0
    warp_barriers: int = 0


class Launch:
    """The accesses of one launch. `who` is the thread that runs now; only one runs at a time."""

    def __init__(self, block_dim: tuple[int, ...], blocks: int = 1) -> None:
        self.who = Who((0, 0, 0), 0)
        self.fences = False
        self.atomic_line = 0  # of the atomic that runs now
        self.traffic: Traffic | None = None  # in the first block
        self.block_bytes = 0  # of shared memory
        self.shared_arrays: dict[Any, Any] = {}
        self.blocks = blocks
        self.atomics = 0
        self.counts = {"most": 0, "total": 0, "alone": 0}  # of the busiest threads, if all blocks are as the first
        self._block_dim, self._begun = block_dim, 0
        self._logs_shared = True
        self._arrays: dict[int, Any] = {}
        self._seen: dict[int, list[Any]] = {}  # by address, `_SLOTS`
        self._seen_in_block: dict[int, list[Any]] = {}  # the same for shared memory
        self._said: set[str] = set()

    def begin_block(self) -> None:
        """Forget the last block's shared memory."""
        self.block_bytes, self.shared_arrays, self._seen_in_block = 0, {}, {}
        self.traffic = (
            Traffic(math.prod(self._block_dim)) if self._begun == 0 and math.prod(self._block_dim) >= WARP else None
        )
        share = (_LOGGED_BLOCKS - _FIRST_BLOCKS - _LAST_BLOCKS) / max(1, self.blocks - _FIRST_BLOCKS - _LAST_BLOCKS)
        at_an_end = self._begun < _FIRST_BLOCKS or self._begun >= self.blocks - _LAST_BLOCKS
        self._logs_shared = at_an_end or self._begun * _GOLDEN_RATIO % 1 < share
        self._begun += 1

    def end_block(self) -> None:
        """Judge what was watched in this block."""
        if self.traffic is None:
            return
        self.traffic.judge()
        steps = self.traffic.steps
        of_warps = sorted(max(steps[at : at + WARP]) for at in range(0, len(steps), WARP))
        alone = of_warps[-1] - of_warps[-2] if len(of_warps) > 1 else 0
        self.counts = {"most": of_warps[-1], "total": of_warps[-1] * self.blocks, "alone": alone * self.blocks}

    def logged(self, argument: Any, name: str) -> Any:
        """Return an argument of the kernel so that its accesses are logged, if it may be written, or watched."""
        array = getattr(getattr(argument, "_item", None), "_ary", None)
        if not isinstance(array, np.ndarray) or array.dtype.names:
            return argument
        if not array.flags.writeable:
            return array if self.traffic is None else _logged_type()(argument._item).of(self, name, None)
        if id(argument) not in self._arrays:
            self._arrays[id(argument)] = _logged_type()(argument._item).of(self, name, self._seen)
        return self._arrays[id(argument)]

    def shared(self, array: Any, line: int, file: str) -> Any:
        """Return a shared array of the current block so that its accesses are logged, unless they are left out.

        Accesses to the fields of records are not logged.
        """
        if not self._logs_shared or array.dtype.names:
            return array
        from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray

        found = _SHARED.search(linecache.getline(file, line))
        name = found[1] if found else "the shared array"
        return _logged_type()(FakeCUDAArray(array)).of(self, name, self._seen_in_block, array.ctypes.data)

    def access(self, kind: str, array: Any, index: Any, line: int) -> None:
        """Record an access of the current thread to one element, and observe a race."""
        address, seen = array.place(index)
        self.watch(kind, array, address, line)
        now = (self.who, line)
        for slot in _CONFLICTS[kind]:
            if seen[slot] is not None and self._conflict(seen[slot][0]):
                self._say(array, index, (_SLOTS[slot], *seen[slot]), (kind, *now))
        if kind == "store":
            seen[0] = now
            return
        first = 1 if kind == "load" else 3
        if seen[first] is not None and seen[first][0][:2] != self.who[:2]:
            seen[first + 1] = seen[first]
        seen[first] = now

    def keep_store(self, array: Any, index: Any, line: int) -> None:
        """Record a store of the value that the element had already: it races with nobody."""
        address, seen = array.place(index)
        self.watch("store", array, address, line)
        seen[0] = (self.who, line)

    def watch(self, kind: str, array: Any, address: int, line: int) -> None:
        """Record an access of the watched warp."""
        if self.traffic is not None and kind != "atomic":
            known = array.__dict__
            start, size = known["_first"], known["_array"].itemsize
            self.traffic.access(self.who.thread, kind, known["name"], line, address - start, size, start != 0)

    def _conflict(self, other: Who) -> bool:
        who = self.who
        if other.block != who.block:
            return not self.fences  # a fence: the blocks may hand over by an atomic
        if other.thread == who.thread or other.barriers != who.barriers:
            return False
        return other.thread // WARP != who.thread // WARP or other.warp_barriers == who.warp_barriers

    def _say(self, array: Any, index: Any, then: Any, now: Any) -> None:
        if array.name in self._said:
            return
        self._said.add(array.name)
        one_block = then[1].block == now[1].block
        first, second = self._thread(then[1], one_block), self._thread(now[1], one_block)
        element = f"`{array.name}[{', '.join(map(str, index if isinstance(index, tuple) else (index,)))}]`"
        lines = f"both in line {now[2]}" if then[2] == now[2] else f"in line {then[2]} and line {now[2]}"
        if then[0] == now[0]:
            said = f"{first} and {second} both store to {element}"
        else:
            said = f"{first} {DOES[then[0]].format(element)} and {second} {DOES[now[0]].format('it')}"
        if one_block:
            why, advice = (
                "No barrier is between them",
                "Put `cuda.syncthreads()` between the two, or use `cuda.atomic`.",
            )
        else:
            why, advice = (
                "Blocks run in no fixed order",
                "Use `cuda.atomic.add`, or give each block an element of its own.",
            )
        observe(RACE, f"A race: {said}, {lines}. {why}: on a GPU the result may be another one.", now[2], advice)

    def _thread(self, who: Who, one_block: bool) -> str:
        x, y, z = self._block_dim
        point = who.thread % x, who.thread // x % y, who.thread // (x * y)
        named = f"thread {point if z > 1 else point[:2] if y > 1 else point[0]}"
        block = who.block[0] if not any(who.block[1:]) else who.block
        return named if one_block else f"{named} of block {block}"


@functools.cache
def _logged_type() -> Any:
    from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray, FakeWithinKernelCUDAArray

    class Logged(FakeWithinKernelCUDAArray):  # type: ignore[misc]
        """An array in a kernel whose accesses are logged."""

        def of(self, launch: Launch, name: str, seen: dict[int, list[Any]] | None, first: int = 0) -> Any:
            """Set what it belongs to. `seen`: None for an input. `first`: of shared memory, its address."""
            array = self._item._ary
            known = {"launch": launch, "name": name, "_seen": seen, "_array": array, "_first": first}
            self.__dict__.update(known | {"_start": array.ctypes.data})
            return self

        def place(self, index: Any) -> tuple[int, list[Any]]:
            """Return an element's address, and what was seen there."""
            known = self.__dict__
            array, at, seen = known["_array"], known["_start"], known["_seen"]
            steps = index if isinstance(index, tuple) else (index,)
            for step, length, stride in zip(steps, array.shape, array.strides, strict=False):
                at += (int(step) if step >= 0 else int(step) + length) * stride
            if seen is None:
                return at, []
            if at not in seen:
                seen[at] = [None] * len(_SLOTS)
            return at, seen[at]

        def __getitem__(self, index: Any) -> Any:
            known = self.__dict__
            found, launch, seen = known["_array"][index], known["launch"], known["_seen"]
            if isinstance(found, np.ndarray):
                return Logged(FakeCUDAArray(found)).of(launch, known["name"], seen, known["_first"])
            if seen is None:
                launch.watch("load", self, self.place(index)[0], sys._getframe(1).f_lineno)
                return found
            kind = "atomic" if launch.atomic_line else "load"
            launch.access(kind, self, index, launch.atomic_line or sys._getframe(1).f_lineno)
            return found

        def __setitem__(self, index: Any, value: Any) -> None:
            array, launch = self.__dict__["_array"], self.__dict__["launch"]
            if self.__dict__["_seen"] is None:
                array[index] = value  # an error: an input is read-only
            before = array[index]
            if launch.atomic_line or isinstance(before, np.ndarray):
                array[index] = value
                return
            array[index] = value
            changed = array[index].tobytes() != before.tobytes()
            record = functools.partial(launch.access, "store") if changed else launch.keep_store
            record(self, index, sys._getframe(1).f_lineno)

    return Logged


@dataclass
class _Place:
    """The accesses in one line to one array: their number by lane, and the addresses of the first requests."""

    size: int
    shared: bool
    turns: list[int] = field(default_factory=lambda: [0] * WARP)
    requests: list[list[int]] = field(default_factory=lambda: [[0] * WARP for _ in range(_REQUESTS)])


class Traffic:
    """The accesses of the watched warp in one launch."""

    def __init__(self, threads: int) -> None:
        self.steps = [0] * threads  # accesses of each thread
        self._places: dict[tuple[int, str, str], _Place] = {}

    def access(self, lane: int, kind: str, name: str, line: int, address: int, size: int, shared: bool) -> None:
        """Record the load or store of an element of `size` bytes; `address` begins at 0 in a shared array."""
        self.steps[lane] += 1
        key = (line, kind, name)
        if lane >= WARP or (key in _settled and not tally.is_counting()):
            return
        place = self._places.setdefault(key, _Place(size, shared))
        turn = place.turns[lane]
        if turn < _REQUESTS:
            place.requests[turn][lane] = address
        place.turns[lane] = turn + 1

    def judge(self) -> None:
        """Observe a note for each line that wastes transactions in all of its requests. Call it after the block."""
        for key, place in self._places.items():
            if len(set(place.turns)) > 1:
                if max(place.turns) >= _LONG_LOOP:
                    lanes = sum(1 << lane for lane, turns in enumerate(place.turns) if turns)
                    tally.loop_of_some(key[0], lanes, max(place.turns))
                continue
            count = conflicts if place.shared else sectors
            units = [count(addresses, place.size) for addresses in place.requests[: place.turns[0]]]
            least, (line, kind, name) = min(units), key
            tally.warp(kind, place.shared, line, sum(units) / len(units), place.size, place.turns[0])
            if key in _settled:
                continue
            _settled.add(key)
            what = f"{kind} of `{name}`" if kind == "load" else f"{kind} to `{name}`"
            if place.shared:
                if least >= _MOST_IN_A_BANK:
                    said = f"{least} lanes of each warp's {what} meet in one bank of shared memory and take turns."
                    observe(NOTE, f"{said} Pad each row by one element.", line)
            elif least >= max(_MOST_SECTORS, _LEAST_WASTE * place.size):
                said = f"Each warp's {what} touches {plural(least, 'sector')} of {_SECTOR_BYTES} bytes;"
                said += f" {place.size} would do."
                observe(NOTE, f"{said} Let neighbouring threads use neighbouring elements.", line)


def sectors(addresses: list[int], size: int) -> int:
    """Return how many sectors the lanes touch."""
    return len({part // _SECTOR_BYTES for each in addresses for part in (each, each + size - 1)})


def conflicts(addresses: list[int], size: int) -> int:
    """Return the largest number of different words in one bank. Lanes with 8 or 16 bytes take turns in any case."""
    together = WARP * _BANK_BYTES // max(size, _BANK_BYTES)
    most = 1
    for first in range(0, WARP, together):
        words = {each // _BANK_BYTES for each in addresses[first : first + together]}
        most = max(most, *Counter(word % _BANKS for word in words).values())
    return most
