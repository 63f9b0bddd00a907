"""What lies around the outputs: whether anything was written there, and where."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from grader.protocol.layout import GUARD_BYTES, POISON_BYTE, Slot
from grader.protocol.memory import CudaArena, HostArena

__all__ = ["outside", "padded", "untouched"]


def padded(slot: Slot) -> bool:
    """Whether there is something between its rows, too."""
    return slot.span != math.prod(slot.shape)


def untouched(arena: CudaArena | HostArena, launches: Sequence[Sequence[Slot]]) -> bool:
    """Whether all guards still hold the poison, of every launch in one go. Between rows nobody looks here.

    The slots of a launch follow each other as in every other launch, at equal distances: so do the gaps behind them.
    """
    import torch

    slots = sorted({slot.offset: slot for launch in launches for slot in launch}.values(), key=lambda one: one.offset)
    ends = [slot.offset + slot.bytes for slot in slots]
    raw = arena.bytes_at(0, ends[-1] + GUARD_BYTES)
    least = [raw[slots[0].offset - GUARD_BYTES : slots[0].offset].amin(), raw[ends[-1] :].amin()]
    gaps = [(end, after.offset - end) for end, after in zip(ends, slots[1:], strict=False)]
    for first in range(len(launches[0])):
        least += [part.amin() for part in _rows(raw, gaps[first :: len(launches[0])])]
    return bool((torch.stack(least) == POISON_BYTE).all())  # no byte is larger than the poison


def _rows(raw: Any, gaps: Sequence[tuple[int, int]]) -> list[Any]:
    """The gaps as one tensor, where they are as long and as far apart as each other."""
    if not gaps:
        return []
    length, pitch = gaps[0][1], gaps[1][0] - gaps[0][0] if len(gaps) > 1 else 0
    if gaps == [(gaps[0][0] + number * pitch, length) for number in range(len(gaps))]:
        return [raw.as_strided((len(gaps), length), (pitch, 1), gaps[0][0])]
    return [raw[start : start + size] for start, size in gaps]


def outside(arena: CudaArena | HostArena, slot: Slot) -> list[int]:
    """Offsets, in elements from the tensor's start, of what was written in its guards and between its rows."""
    import torch

    item = slot.bytes // slot.span
    if not padded(slot) and not _written(arena, slot):
        return []
    raw = arena.bytes_at(slot.offset - GUARD_BYTES, slot.bytes + 2 * GUARD_BYTES)
    elements = (raw.view(-1, item) != POISON_BYTE).any(-1)
    first = GUARD_BYTES // item
    own = elements[first : first + slot.span]
    own.as_strided(slot.shape, slot.strides, storage_offset=first).fill_(False)
    return (torch.nonzero(elements).flatten() - first).tolist()


def _written(arena: CudaArena | HostArena, slot: Slot) -> bool:
    before = arena.bytes_at(slot.offset - GUARD_BYTES, GUARD_BYTES)
    after = arena.bytes_at(slot.offset + slot.bytes, GUARD_BYTES)
    return bool((before != POISON_BYTE).any() | (after != POISON_BYTE).any())
