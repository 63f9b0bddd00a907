"""The output probe that ends a round: it reads random elements of every launch's outputs with the copy engine.

The clock stops after the read, so later writes show. The copy engine runs while the worker holds the GPU; a gathering
kernel would need a context switch (150 µs on an H200).
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from grader.protocol.arena import Slot, checked

if TYPE_CHECKING:
    from grader.judge.checking.buffers import Buffers, Layout

LOOKS = 192  # probed elements per output, over all launches; four times as many take 15 µs more (`clock/looks`)
_FEWEST = 6  # probed elements per launch, if there are many launches
_SMALL = 5  # least distance of probed elements: below it, probe all
_PITCH_LIMIT = 1 << 31  # bytes between two rows of a 2D copy
_source = random.SystemRandom()  # torch's generator starts with the same seed in every process

Column = tuple[int, int, int, int]  # a 2D copy: offset, pitch, rows, bytes per element


class OutputProbe:
    """Reads elements at random places, drawn again for each round."""

    def __init__(self, buffers: Buffers, layout: Layout) -> None:
        self._buffers = buffers
        self._columns = _drawn(layout)
        self._bytes = _size(self._columns)
        if buffers.torch_device == "cuda":
            self._prepare(decoys=_drawn(layout))

    @property
    def copies(self) -> int:
        """The number of copies, which take most of its time."""
        return len(self._columns)

    def take(self) -> bytes:
        """Read the elements now."""
        outputs = self._buffers.arenas["outputs"]
        if self._buffers.torch_device == "cpu":
            raw = outputs.bytes_at(0, outputs.size)
            return b"".join(
                bytes(raw[offset + row * pitch : offset + row * pitch + item].tolist())
                for offset, pitch, rows, item in self._columns
                for row in range(rows)
            )
        from cuda.bindings import driver

        start, stream = driver.cuMemcpy2DAsync, self._stream
        results = [start(copy, stream) for copy in self._copies]
        for result in (*results, driver.cuStreamSynchronize(stream)):
            checked(result)
        return bytes(self._target[: self._bytes].numpy())

    def _prepare(self, decoys: list[Column]) -> None:
        """Do everything but the copies before the clock starts, and warm the host's caches with a first read.

        That read is at other places: it leaves the elements in the L2, where a submission could find them by timing.
        """
        self._target = torch.zeros(max(self._bytes, _size(decoys)), dtype=torch.uint8, pin_memory=True)
        self._stream = torch.cuda.current_stream().cuda_stream
        real, self._copies = self._copies_of(self._columns), self._copies_of(decoys)
        self.take()
        self._copies = real

    def _copies_of(self, columns: list[Column]) -> list[Any]:
        from cuda.bindings import driver

        copies = []
        base, done = self._buffers.arenas["outputs"].address, 0  # type: ignore[union-attr]
        for offset, pitch, rows, item in columns:
            copy = driver.CUDA_MEMCPY2D()
            copy.srcMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
            copy.srcDevice, copy.srcPitch = base + offset, pitch
            copy.dstMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_HOST
            copy.dstHost, copy.dstPitch = self._target.data_ptr() + done, item
            copy.WidthInBytes, copy.Height = item, rows
            copies.append(copy)
            done += rows * item
        return copies


class NoProbe:
    """Reads nothing: for staged outputs, which are copied back after the clock has stopped and all work has ended."""

    copies = 0

    def take(self) -> bytes:
        return b""


def _drawn(layout: Layout) -> list[Column]:
    columns: list[Column] = []
    for array in layout.case.outputs:
        columns += _columns([launch[array.name] for launch in layout.launches])
    _source.shuffle(columns)  # no launch is always read last
    return columns


def _size(columns: Sequence[Column]) -> int:
    return sum(rows * item for _, _, rows, item in columns)


def _columns(slots: Sequence[Slot]) -> list[Column]:
    """Probe few launches with a comb each, many with copies that take one element from every launch."""
    slots = list({slot.offset: slot for slot in slots}.values())  # repeated launches share slots
    each = math.ceil(LOOKS / len(slots))
    if 2 * len(slots) <= 3 * each:  # `_column` needs one copy or two
        return [_comb(slot, each) for slot in slots]
    return [one for _ in range(max(each, _FEWEST)) for one in _column(slots)]


def _comb(slot: Slot, least: int) -> Column:
    """Probe `least` to 1.5 × `least` equidistant elements of a tensor, padding included, each with equal probability.

    The distance is a random prime, so that no short period hides a pattern from the comb.
    """
    item, widest, distance = slot.bytes // slot.span, slot.span // least, 1
    if widest >= _SMALL:
        distance = _prime(_source.randint(math.ceil(widest / 1.5), widest))
    first = _source.randrange(distance)
    return slot.offset + item * first, item * distance, len(range(first, slot.span, distance)), item


def _prime(most: int) -> int:
    """Return the largest odd prime up to `most`, which is at least 3."""
    while not (most % 2 and all(most % factor for factor in range(3, math.isqrt(most) + 1, 2))):
        most -= 1
    return most


def _column(slots: Sequence[Slot]) -> list[Column]:
    """Probe one element of every slot, each with equal probability: one copy if the slots are equidistant.

    Its index moves by a step from slot to slot and wraps around at the end, which takes a second copy. Interpolating
    between two random indices would avoid the ends in the middle launches.
    """
    item, step = slots[0].bytes // slots[0].span, 0
    element = item * _source.randrange(slots[0].span)
    offsets = sorted(slot.offset for slot in slots)
    rows, pitches = len(offsets), {after - before for before, after in itertools.pairwise(offsets)}
    pitch, size = max(pitches, default=0), slots[0].span * item
    if rows > 1:
        most = slots[0].span // (rows - 1)  # so that it wraps around at most once
        step = item * _source.randint(most // 2, most) * _source.choice((-1, 1))
    if len(pitches) != 1 or not item <= pitch + step < _PITCH_LIMIT:
        return [(offset + element, item, 1, item) for offset in offsets]
    turns = next((row for row in range(rows) if not 0 <= element + row * step < size), rows)
    columns = [(offsets[0] + element, pitch + step, turns, item)]
    if turns < rows:
        beyond = element + turns * step
        columns.append((offsets[turns] + beyond % size, pitch + step, rows - turns, item))
    return columns
