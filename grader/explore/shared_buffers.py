"""Where a kernel's buffers lie in shared memory, and what they hold while its loop runs, read from TritonGPU IR."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod

from grader.explore.compiled import Compiled

__all__ = ["Buffer", "Pipeline", "pipeline"]

_ITEM_BYTES = {
    "f64": 8,
    "i64": 8,
    "f32": 4,
    "i32": 4,
    "f16": 2,
    "bf16": 2,
    "i16": 2,
    "i8": 1,
    "f8E4M3FN": 1,
    "f8E5M2": 1,
}
_ALLOCATED = re.compile(
    r"%(?P<value>\w+) = ttg\.local_alloc \{allocation\.offset = (?P<offset>\d+) : i32\} : \(\) -> "
    r"!ttg\.memdesc<(?P<shape>[\dx]+)x(?P<type>[a-z]\w*), "
)
_CONVERTED = re.compile(
    r"ttg\.convert_layout .*\{allocation\.offset = (?P<offset>\d+) : i32\} : "
    r"tensor<(?P<shape>[\dx]+)x(?P<type>[a-z]\w*), "
)
_COPIED = re.compile(r"ttg\.async_copy_global_to_local %\w+, %(?P<slot>\w+)")
_SLOT = re.compile(r"%(?P<slot>\w+) = ttg\.memdesc_index %(?P<buffer>\w+)\[")


@dataclass(frozen=True)
class Buffer:
    """Shared memory for one thing: `slots` pieces of `slot_bytes` that begin at `offset`."""

    name: str
    offset: int
    slot_bytes: int
    slots: int

    @property
    def end(self) -> int:
        return self.offset + self.slots * self.slot_bytes


@dataclass(frozen=True)
class Pipeline:
    """The buffers of a loop, how many copies are under way when it begins, and the space that is used after it."""

    buffers: tuple[Buffer, ...]
    ahead: int
    after: tuple[Buffer, ...]
    total_bytes: int

    @property
    def slots(self) -> int:
        return max((buffer.slots for buffer in self.buffers), default=0)

    def state(self, slot: int, step: int, steps: int) -> str:
        """What a slot holds in step `step` of `steps`: "free", "arriving" or "read".

        What step s needs is read in step s, and its copy starts `ahead` steps before: those of the first steps start
        before the loop, in steps below 0.
        """
        for own in range(slot, steps, self.slots):
            if step == own:
                return "read"
            if own - self.ahead <= step < own:
                return "arriving"
        return "free"


def _bytes(shape: list[int], kind: str) -> int:
    return prod(shape) * _ITEM_BYTES.get(kind, 1)


def pipeline(compiled: Compiled) -> Pipeline:
    """The buffers of the kernel's loop. There are none where the kernel has no loop that copies ahead."""
    text = compiled.allocated or compiled.texts["ttgir"]
    before, _, inside = text.partition("scf.for")
    buffers = {}
    for found in _ALLOCATED.finditer(text):
        slots, *shape = (int(n) for n in found["shape"].split("x"))
        if found["type"] in _ITEM_BYTES and len(shape) >= 2:
            size = _bytes(shape, found["type"])
            name = re.sub(r"_\d+$", "", found["value"])
            buffers[found["value"]] = Buffer(name, int(found["offset"]), size, slots)
    indexed = {found["slot"]: found["buffer"] for found in _SLOT.finditer(text)}
    copied = [indexed.get(found["slot"], "") for found in _COPIED.finditer(before)]
    fed = [name for name in buffers if name in copied]
    after = tuple(
        Buffer("the result, on its way to another layout", int(found["offset"]),
               _bytes([int(n) for n in found["shape"].split("x")], found["type"]), 1)
        for found in _CONVERTED.finditer(inside)
    )  # fmt: skip
    ahead = copied.count(fed[0]) if fed else 0
    return Pipeline(tuple(buffers[name] for name in fed), ahead, after, compiled.shared_bytes)
