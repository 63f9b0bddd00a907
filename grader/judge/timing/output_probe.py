"""The look at the outputs that ends a round: random elements of every output of every launch, by the copy engine.

The clock stops when they have been read; what is written there later does not count. A kernel that gathers them would
make the GPU switch to the arbiter's context (150 µs on an H200); the copy engine reads beside the other's work.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from grader.protocol.arena import Slot, checked

if TYPE_CHECKING:
    from grader.judge.checking.buffers import Desk, Spread

# Four times as many take 15 µs more (`clock/looks`).
LOOKS = 192  # elements of each output, of all launches together, at least
_FEWEST = 6  # elements that are looked at in each of many launches
_SMALL = 5  # elements between those that are looked at: where they would be fewer, all are
_PITCH_LIMIT = 1 << 31  # bytes between the rows of a two-dimensional copy
_source = random.SystemRandom()  # torch's own generator begins with the same seed in every process

Column = tuple[int, int, int, int]  # what a copy fetches: offset, pitch, rows, bytes of an element


class Glimpse:
    """Where to look, drawn anew for each round."""

    def __init__(self, desk: Desk, spread: Spread) -> None:
        self._desk = desk
        self._columns = _drawn(spread)
        self._bytes = _size(self._columns)
        if desk.torch_device == "cuda":
            self._prepare(decoys=_drawn(spread))

    @property
    def copies(self) -> int:
        """By which it fetches what it looks at: they take most of its time."""
        return len(self._columns)

    def take(self) -> bytes:
        """The bytes at these places, now."""
        outputs = self._desk.arenas["outputs"]
        if self._desk.torch_device == "cpu":
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
        """Everything but the copies themselves is done before the clock starts.

        The first look takes longer: what the host needs for it is not in its caches. So it is at other places. What was
        read stays in the GPU's L2, where a submission could find it by the time that a load takes, and so learn where
        it will be looked at.
        """
        import torch

        self._target = torch.zeros(max(self._bytes, _size(decoys)), dtype=torch.uint8, pin_memory=True)
        self._stream = torch.cuda.current_stream().cuda_stream
        real, self._copies = self._copies_of(self._columns), self._copies_of(decoys)
        self.take()
        self._copies = real

    def _copies_of(self, columns: list[Column]) -> list[Any]:
        from cuda.bindings import driver

        copies = []
        base, done = self._desk.arenas["outputs"].address, 0  # type: ignore[union-attr]
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


def _drawn(spread: Spread) -> list[Column]:
    columns: list[Column] = []
    for array in spread.case.outputs:
        columns += _columns([launch[array.name] for launch in spread.launches])
    _source.shuffle(columns)  # no launch is known to be looked at last
    return columns


def _size(columns: Sequence[Column]) -> int:
    return sum(rows * item for _, _, rows, item in columns)


def _item(slot: Slot) -> int:
    return slot.bytes // slot.span


def _columns(slots: Sequence[Slot]) -> list[Column]:
    """Of few launches a comb through each; of many, elements that one copy fetches from all of them."""
    slots = list({slot.offset: slot for slot in slots}.values())  # repeated launches share their slots
    each = math.ceil(LOOKS / len(slots))
    if 2 * len(slots) <= 3 * each:  # an element of all launches takes one copy or two
        return [_comb(slot, each) for slot in slots]
    return [one for _ in range(max(each, _FEWEST)) for one in _column(slots)]


def _comb(slot: Slot, least: int) -> Column:
    """So many elements of a tensor, or up to half as many more, at equal distances: any element as likely as any other,
    and no part that is longer than a `least` of the whole is passed over. The distance is a random prime, so that no
    pattern with a small period is in step with it. Some lie in the padding between rows, which stays as it is.
    """
    item, widest, distance = _item(slot), slot.span // least, 1
    if widest >= _SMALL:
        distance = _prime(_source.randint(math.ceil(widest / 1.5), widest))
    first = _source.randrange(distance)
    return slot.offset + item * first, item * distance, len(range(first, slot.span, distance)), item


def _prime(most: int) -> int:
    """The largest odd prime up to it, which is 3 or more."""
    while not (most % 2 and all(most % factor for factor in range(3, math.isqrt(most) + 1, 2))):
        most -= 1
    return most


def _column(slots: Sequence[Slot]) -> list[Column]:
    """An element of every slot, any of its elements as likely as any other: one copy where they lie at equal distances,
    as `Desk.lay` places them.

    It is another one in each, some steps on; past the end it goes on at the other, in a copy of its own. A way between
    two random elements would shun the ends in the middle launches.
    """
    item, step = _item(slots[0]), 0
    element = item * _source.randrange(slots[0].span)
    offsets = sorted(slot.offset for slot in slots)
    rows, pitches = len(offsets), {after - before for before, after in itertools.pairwise(offsets)}
    pitch, size = max(pitches, default=0), slots[0].span * item
    if rows > 1:
        most = slots[0].span // (rows - 1)  # so that it passes the end once at most
        step = item * _source.randint(most // 2, most) * _source.choice((-1, 1))
    if len(pitches) != 1 or not item <= pitch + step < _PITCH_LIMIT:
        return [(offset + element, item, 1, item) for offset in offsets]
    turns = next((row for row in range(rows) if not 0 <= element + row * step < size), rows)
    columns = [(offsets[0] + element, pitch + step, turns, item)]
    if turns < rows:
        beyond = element + turns * step
        columns.append((offsets[turns] + beyond % size, pitch + step, rows - turns, item))
    return columns
