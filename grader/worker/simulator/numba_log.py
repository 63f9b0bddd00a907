"""Log what the threads of a simulated Numba kernel do to arrays, and observe races.

Two threads race for an element if one of them stores to it without an atomic, and no barrier lies between them. The
simulator runs threads in turn, so it hides that.
"""

from __future__ import annotations

import functools
import linecache
import re
import sys
from typing import Any, NamedTuple

import numpy as np

from grader.worker.simulator.accesses import DOES, RACE, observe

_SHARED = re.compile(r"\b(\w+)\s*=\s*\w*\.?shared\.array\b")
_WARP = 32
# Kept for each element: the last store, the last two threads that loaded it, and the last two atomics.
_SLOTS = ("store", "load", "load", "atomic", "atomic")
_CONFLICTS = {"load": (0, 3, 4), "store": (0, 1, 2, 3, 4), "atomic": (0, 1, 2)}


class Who(NamedTuple):
    """A thread between two barriers: its block, its number there, and the barriers of block and warp before it."""

    block: tuple[int, ...]
    thread: int
    barriers: int = 0
    warp_barriers: int = 0


class Launch:
    """The accesses of one launch. `who` is the thread that runs now; only one runs at a time."""

    def __init__(self, block_dim: tuple[int, ...]) -> None:
        self.who = Who((0, 0, 0), 0)
        self.fences = False
        self.atomic_line = 0  # of the atomic that runs now
        self._block_dim = block_dim
        self._arrays: dict[int, Any] = {}
        self._seen: dict[int, list[Any]] = {}  # by address, `_SLOTS`
        self.seen_in_block: dict[int, list[Any]] = {}  # the same for shared memory
        self._said: set[str] = set()

    def logged(self, argument: Any, name: str) -> Any:
        """Return an argument of the kernel so that its accesses are logged, if it may be written."""
        array = getattr(getattr(argument, "_item", None), "_ary", None)
        if not isinstance(array, np.ndarray) or not array.flags.writeable or array.dtype.names:
            return argument
        if id(argument) not in self._arrays:
            self._arrays[id(argument)] = _logged_type()(argument._item).of(self, name, self._seen)
        return self._arrays[id(argument)]

    def shared(self, array: Any, line: int, file: str) -> Any:
        """Return a shared array of the current block so that its accesses are logged."""
        from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray

        found = _SHARED.search(linecache.getline(file, line))
        name = found[1] if found else "the shared array"
        return _logged_type()(FakeCUDAArray(array)).of(self, name, self.seen_in_block)

    def access(self, kind: str, array: Any, index: Any, line: int) -> None:
        """Record an access of the current thread to one element, and observe a race."""
        seen = array.seen_at(index)
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
        array.seen_at(index)[0] = (self.who, line)

    def _conflict(self, other: Who) -> bool:
        who = self.who
        if other.block != who.block:
            return not self.fences  # a fence: the blocks may hand over by an atomic
        if other.thread == who.thread or other.barriers != who.barriers:
            return False
        return other.thread // _WARP != who.thread // _WARP or other.warp_barriers == who.warp_barriers

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

        def of(self, launch: Launch, name: str, seen: dict[int, list[Any]]) -> Any:
            array = self._item._ary
            known = {"launch": launch, "name": name, "_seen": seen, "_array": array, "_start": array.ctypes.data}
            self.__dict__.update(known)
            return self

        def seen_at(self, index: Any) -> list[Any]:
            array, at = self.__dict__["_array"], self.__dict__["_start"]
            steps = index if isinstance(index, tuple) else (index,)
            for step, length, stride in zip(steps, array.shape, array.strides, strict=False):
                at += (int(step) if step >= 0 else int(step) + length) * stride
            seen = self.__dict__["_seen"].get(at)
            if seen is None:
                seen = self.__dict__["_seen"][at] = [None] * len(_SLOTS)
            return seen  # type: ignore[no-any-return]

        def __getitem__(self, index: Any) -> Any:
            found = self.__dict__["_array"][index]
            launch = self.__dict__["launch"]
            if isinstance(found, np.ndarray):
                return Logged(FakeCUDAArray(found)).of(launch, self.__dict__["name"], self.__dict__["_seen"])
            kind = "atomic" if launch.atomic_line else "load"
            launch.access(kind, self, index, launch.atomic_line or sys._getframe(1).f_lineno)
            return found

        def __setitem__(self, index: Any, value: Any) -> None:
            array, launch = self.__dict__["_array"], self.__dict__["launch"]
            before = array[index]
            if launch.atomic_line or isinstance(before, np.ndarray):
                array[index] = value
                return
            array[index] = value
            changed = array[index].tobytes() != before.tobytes()
            record = functools.partial(launch.access, "store") if changed else launch.keep_store
            record(self, index, sys._getframe(1).f_lineno)

    return Logged
