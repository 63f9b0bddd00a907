"""Where the tensors of a case's launches lie in the arenas."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from grader.exercise import Case
from grader.protocol.layout import GUARD_BYTES, Slot, place

__all__ = ["Spread", "laid"]


@dataclass(frozen=True)
class Spread:
    """A case laid out: one dict of slots for each launch, and how much of each arena is in use."""

    case: Case
    launches: tuple[dict[str, Slot], ...]
    used: dict[str, int]

    def repeated(self, times: int) -> Spread:
        """The same launches once more and once more, for a worker that runs nobody's submission."""
        return replace(self, launches=self.launches * times)

    def plan(self) -> list[list[dict[str, Any]]]:
        """What a worker needs to know of it."""
        return [[slot.to_dict() for slot in launch.values()] for launch in self.launches]


def laid(case: Case, launches: int) -> Spread:
    """One tensor after the other, with guards around them, however long the arenas would have to be."""
    ends = {"inputs": 0, "outputs": 0}
    placed = []
    for _ in range(launches):
        slots = {}
        for array in case.arrays:
            arena = "inputs" if array.role == "in" else "outputs"
            slots[array.name], ends[arena] = place(
                arena, ends[arena], array.shape, array.dtype, array.row_padding, array.transposed
            )
            ends[arena] -= GUARD_BYTES  # the guard behind a tensor is the one before the next
        placed.append(slots)
    return Spread(case, tuple(placed), {name: end + GUARD_BYTES for name, end in ends.items()})
