"""Where each tensor lies in an arena: guard, tensor, guard, tensor, guard …, all multiples of 512 bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

__all__ = ["GUARD_BYTES", "INPUT_GUARD", "ITEM_BYTES", "POISON_BYTE", "Slot", "place"]

POISON_BYTE = 0xFF  # around and in outputs: NaN in every floating-point type, and no NaN that arithmetic makes
INPUT_GUARD = 0x7FF0  # 16-bit words around inputs: NaN in every type too, and another: a copy of it into a guard shows
GUARD_BYTES = 128 << 10  # wider than the widest block that a kernel of the course masks: 32 768 float32
ITEM_BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "uint8": 1}
_ALIGN = 512


@dataclass(frozen=True)
class Slot:
    """A tensor in an arena: `offset` in bytes, `strides` in elements."""

    arena: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str

    @property
    def span(self) -> int:
        """Elements from the first to one past the last."""
        return 1 + sum((n - 1) * stride for n, stride in zip(self.shape, self.strides, strict=True))

    @property
    def bytes(self) -> int:
        return self.span * ITEM_BYTES[self.dtype]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Slot:
        return cls(data["arena"], data["offset"], tuple(data["shape"]), tuple(data["strides"]), data["dtype"])


def place(
    arena: str, start: int, shape: Sequence[int], dtype: str, row_padding: int, transposed: bool = False
) -> tuple[Slot, int]:
    """A slot for a tensor that begins after a guard at `start`, and the first byte after its own guard.

    It is row-major; `transposed`, it is a view of one whose axes stand the other way round.
    """
    if transposed:
        slot, end = place(arena, start, shape[::-1], dtype, row_padding)
        return replace(slot, shape=slot.shape[::-1], strides=slot.strides[::-1]), end
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
        if axis == len(shape) - 2:
            strides[axis] += row_padding
    slot = Slot(arena, _up(start + GUARD_BYTES), tuple(shape), tuple(strides), dtype)
    return slot, _up(slot.offset + slot.bytes + GUARD_BYTES)


def _up(value: int) -> int:
    return -(-value // _ALIGN) * _ALIGN
