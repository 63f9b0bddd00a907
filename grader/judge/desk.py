"""The arbiter's desk: where inputs are drawn, outputs are poisoned, and answers are checked.

The worker sees the arenas alone. What the oracle reads are private copies of the inputs, so that nothing a submission
does to its inputs changes what is expected of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from grader.errors import MachineLacks
from grader.exercise import Case, Exercise
from grader.judge.compare import compare, poisoned, suspected
from grader.judge.inputs import draw, generator
from grader.protocol.layout import GUARD_BYTES, INPUT_GUARD, POISON_BYTE, Slot, place
from grader.protocol.memory import CudaArena, HostArena, tensor
from grader.verdict import Mismatch

__all__ = ["Desk", "Spread"]

_HOST_BYTES = 1 << 28
_CUDA_BYTES = 4 << 30
_FLOAT64_COPIES = 6  # of the largest array: inputs, expected values, errors, and what the oracle needs besides
_GLIMPSES = 64  # elements of each output that must be there when the clock stops
_CUDA_SHARE = 0.15  # of the free memory, for each arena: the private copies and the oracle need as much again


@dataclass(frozen=True)
class Spread:
    """A case laid out: one dict of slots for each launch, and how much of each arena is in use."""

    case: Case
    launches: tuple[dict[str, Slot], ...]
    used: dict[str, int]

    def plan(self) -> list[list[dict[str, Any]]]:
        """What a worker needs to know of it."""
        return [[slot.to_dict() for slot in launch.values()] for launch in self.launches]

    def places(self) -> Any:
        """Where `Desk.glimpse` will look: the bytes of random elements of every output of every launch.

        From the system's randomness: torch's own generator begins with the same seed in every process.
        """
        import torch

        source, places = generator("cpu"), []
        for launch in self.launches:
            for slot in (launch[array.name] for array in self.case.outputs):
                item = slot.bytes // slot.span
                element = torch.zeros(_GLIMPSES, dtype=torch.int64)
                for size, stride in zip(slot.shape, slot.strides, strict=True):
                    element += stride * torch.randint(size, (_GLIMPSES,), generator=source)
                places.append((slot.offset + item * element)[:, None] + torch.arange(item))
        return torch.cat(places).flatten()


class Desk:
    """Two arenas on one device ("cuda" or "simulator"): `inputs`, read-only for workers, and `outputs`."""

    def __init__(self, device: str) -> None:
        import torch

        self.torch_device = "cuda" if device == "cuda" else "cpu"
        make: Any = CudaArena if device == "cuda" else HostArena
        size = _HOST_BYTES
        if device == "cuda":
            free, _ = torch.cuda.mem_get_info()
            size = min(_CUDA_BYTES, int(free * _CUDA_SHARE))
        self.arenas: dict[str, CudaArena | HostArena] = {
            "inputs": make.create(size, sealed=True),
            "outputs": make.create(size, sealed=False),
        }
        self._source = generator(self.torch_device)
        self._private: list[dict[str, Any]] = []

    def capacity(self, case: Case) -> int:
        """How many launches with inputs and outputs of their own fit."""
        used = self._lay(case, 1).used
        return min(arena.size // max(1, used[name]) for name, arena in self.arenas.items())

    def fits(self, case: Case) -> bool:
        """Whether one launch fits the arenas, and the oracle and the comparison in float64 the memory that is free."""
        if self.capacity(case) < 1:
            return False
        elements = max(math.prod(array.shape) for array in case.arrays)
        if self.torch_device == "cpu":
            return True
        import torch

        idle = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()  # ours already, and free for reuse
        return _FLOAT64_COPIES * 8 * elements < torch.cuda.mem_get_info()[0] + idle

    def lay(self, case: Case, launches: int = 1) -> Spread:
        """Places the tensors of `launches` launches.

        Raises:
            MachineLacks: they do not fit.
        """
        spread = self._lay(case, launches)
        if any(spread.used[name] > arena.size for name, arena in self.arenas.items()):
            raise MachineLacks(f"The case {case.name} needs more memory than this machine has free.")
        return spread

    def _lay(self, case: Case, launches: int) -> Spread:
        ends = {"inputs": 0, "outputs": 0}
        placed = []
        for _ in range(launches):
            slots = {}
            for array in case.arrays:
                arena = "inputs" if array.role == "in" else "outputs"
                slots[array.name], ends[arena] = place(arena, ends[arena], array.shape, array.dtype, array.row_padding)
                ends[arena] -= GUARD_BYTES  # the guard behind a tensor is the one before the next
            placed.append(slots)
        return Spread(case, tuple(placed), {name: end + GUARD_BYTES for name, end in ends.items()})

    def deal(self, spread: Spread) -> None:
        """Draws fresh inputs for every launch, keeps private copies, and hands them out with NaN all around."""
        import torch

        self._bytes(spread, "inputs").view(torch.int16).fill_(INPUT_GUARD)
        self._private = []
        for launch in spread.launches:
            inputs = {array.name: draw(array, spread.case.fill, self._source) for array in spread.case.inputs}
            for name, value in inputs.items():
                self._view(launch[name]).copy_(value)
            self._private.append(inputs)
        self.poison(spread)

    def poison(self, spread: Spread) -> None:
        """Fills the outputs and their guards with the poison, and waits until that is done."""
        self._bytes(spread, "outputs").fill_(POISON_BYTE)
        self.settle()

    def settle(self) -> None:
        """Waits for this process's own work on the device."""
        if self.torch_device == "cuda":
            import torch

            torch.cuda.synchronize()

    def glimpse(self, places: Any) -> Any:
        """The bytes at these places, now. Taken before the clock stops: what is there later does not count."""
        outputs = self.arenas["outputs"]
        return outputs.bytes_at(0, outputs.size)[places].cpu()

    def check(self, spread: Spread, exercise: Exercise) -> Mismatch | None:
        """The first output, launch by launch, that is not what the oracle says."""
        for launch, inputs in zip(spread.launches, self._private, strict=True):
            expected = exercise.oracle({name: value.double() for name, value in inputs.items()})
            for array, answer in zip(spread.case.outputs, _tuple(expected), strict=True):
                got = self._view(launch[array.name])
                found = compare(array.name, got, answer, exercise.budget, self._outside(launch[array.name]))
                if found is None:
                    continue
                named = found.wrong and not found.unwritten  # what was never written is NaN, as some bugs write
                sentence = suspected(got, answer, inputs, exercise.suspects) if named else ""
                return Mismatch(**{**vars(found), "suspect": sentence})
        return None

    def _outside(self, slot: Slot) -> list[int]:
        """Offsets, in elements from the tensor's start, of what was written in its guards and between its rows."""
        import torch

        item = slot.bytes // slot.span
        if slot.span == math.prod(slot.shape) and not self._guards_written(slot):
            return []
        raw = self.arenas[slot.arena].bytes_at(slot.offset - GUARD_BYTES, slot.bytes + 2 * GUARD_BYTES)
        elements = (raw.view(-1, item) != POISON_BYTE).any(-1)
        first = GUARD_BYTES // item
        own = elements[first : first + slot.span]
        own.as_strided(slot.shape, slot.strides, storage_offset=first).fill_(False)
        return [int(at) - first for at in torch.nonzero(elements).flatten()]

    def _guards_written(self, slot: Slot) -> bool:
        arena = self.arenas[slot.arena]
        before = arena.bytes_at(slot.offset - GUARD_BYTES, GUARD_BYTES)
        after = arena.bytes_at(slot.offset + slot.bytes, GUARD_BYTES)
        return bool((before != POISON_BYTE).any() | (after != POISON_BYTE).any())

    def unwritten(self, spread: Spread) -> bool:
        """Whether no element of any output was written."""
        return all(
            bool(poisoned(self._view(launch[array.name])).all())
            for launch in spread.launches
            for array in spread.case.outputs
        )

    def _bytes(self, spread: Spread, arena: str) -> Any:
        return self.arenas[arena].bytes_at(0, spread.used[arena])

    def _view(self, slot: Slot) -> Any:
        return tensor(self.arenas[slot.arena], slot)


def _tuple(expected: Any) -> tuple[Any, ...]:
    return expected if isinstance(expected, tuple) else (expected,)
