"""Which thread holds which elements of a block: the blocked layouts of a kernel, read from its TritonGPU IR."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod

from grader.explore.compiled import Compiled

__all__ = ["Blocked", "Held", "loaded_layouts"]

_LAYOUT = re.compile(
    r"^(?P<name>#\w+) = #ttg\.blocked<\{sizePerThread = \[(?P<size>[\d, ]+)\], "
    r"threadsPerWarp = \[(?P<threads>[\d, ]+)\], "
    r"warpsPerCTA = \[(?P<warps>[\d, ]+)\], order = \[(?P<order>[\d, ]+)\]",
    re.MULTILINE,
)
_LOAD = re.compile(
    r"%(?P<value>\w+) = (?:tt\.load|ttg\.async_copy_global_to_local) .*: "
    r"tensor<(?P<shape>[\dx]+)x!tt\.ptr<\w+>, (?P<name>#\w+)>"
)


@dataclass(frozen=True)
class Blocked:
    """A layout. Each tuple has a number for each dimension; `order` begins with the dimension that is walked first."""

    size: tuple[int, ...]
    threads: tuple[int, ...]
    warps: tuple[int, ...]
    order: tuple[int, ...]

    def holder(self, index: tuple[int, ...]) -> tuple[int, int]:
        """The warp and the lane that hold an element; a block larger than the layout repeats it."""
        lanes = [i // size % threads for i, size, threads in zip(index, self.size, self.threads, strict=True)]
        across = [size * threads for size, threads in zip(self.size, self.threads, strict=True)]
        warps = [i // each % count for i, each, count in zip(index, across, self.warps, strict=True)]
        return self._number(warps, self.warps), self._number(lanes, self.threads)

    def _number(self, place: list[int], counts: tuple[int, ...]) -> int:
        number, step = 0, 1
        for dimension in self.order:
            number += place[dimension] * step
            step *= counts[dimension]
        return number

    @property
    def tile(self) -> tuple[int, ...]:
        """The shape that all threads cover once."""
        return tuple(a * b * c for a, b, c in zip(self.size, self.threads, self.warps, strict=True))

    def words(self) -> str:
        """As TritonGPU IR writes it."""
        return (
            f"sizePerThread = {list(self.size)}, threadsPerWarp = {list(self.threads)}, "
            f"warpsPerCTA = {list(self.warps)}, order = {list(self.order)}"
        )


@dataclass(frozen=True)
class Held:
    """A block that is loaded, and how its elements are spread over the threads."""

    name: str
    shape: tuple[int, ...]
    layout: Blocked

    @property
    def each(self) -> int:
        """Elements that a thread holds, if the block has one for each at least."""
        return max(1, prod(self.shape) // (prod(self.layout.threads) * prod(self.layout.warps)))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(","))


def loaded_layouts(compiled: Compiled) -> list[Held]:
    """The blocks that the kernel loads from global memory, in the order of the program, each layout and shape once."""
    text = compiled.texts["ttgir"]
    layouts = {
        found["name"]: Blocked(*(_numbers(found[part]) for part in ("size", "threads", "warps", "order")))
        for found in _LAYOUT.finditer(text)
    }
    held: dict[tuple[tuple[int, ...], Blocked], Held] = {}
    for found in _LOAD.finditer(text):
        if found["name"] in layouts:
            shape = tuple(int(n) for n in found["shape"].split("x"))
            name = re.sub(r"_\d+$", "", found["value"])
            held.setdefault((shape, layouts[found["name"]]), Held(name, shape, layouts[found["name"]]))
    return list(held.values())
