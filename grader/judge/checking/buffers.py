"""The arbiter's buffers: they draw inputs, poison outputs and check answers.

Workers map only the arenas. The oracle reads private copies of the inputs, which no submission can change.
"""

from __future__ import annotations

import math
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from grader.errors import MachineLacks, UnusableExercise
from grader.exercise import Array, Budget, Case, Exercise, Tensors
from grader.judge.checking import fused_compare
from grader.judge.checking.compare import authored, compare, doubled, explains, poisoned, suspected
from grader.judge.gpu import health
from grader.judge.gpu.ceilings import Machine
from grader.judge.score import quartile
from grader.protocol.arena import (
    GUARD_BYTES,
    INPUT_GUARD,
    POISON_BYTE,
    Arena,
    CudaArena,
    HostArena,
    Slot,
    StagedArena,
    copy_on_gpu,
    place,
    tensor,
)
from grader.verdict import Mismatch


@dataclass(frozen=True)
class Layout:
    """A case's tensors in the arenas: a dict of slots per launch, and the bytes used of each arena."""

    case: Case
    launches: tuple[dict[str, Slot], ...]
    used: dict[str, int]

    @property
    def spans(self) -> dict[str, int]:
        """The bytes used from the start of each arena that holds a tensor."""
        names = {slot.arena for launch in self.launches for slot in launch.values()}
        return {name: self.used["inputs" if name == "inputs" else "outputs"] for name in sorted(names)}

    def repeated(self, times: int) -> Layout:
        """Repeat the same launches, for a trusted worker."""
        return replace(self, launches=self.launches * times)

    def plan(self) -> list[list[dict[str, Any]]]:
        """Return the layout as a message to a worker."""
        return [[slot.to_dict() for slot in launch.values()] for launch in self.launches]


def laid(case: Case, launches: int) -> Layout:
    """Lay out the tensors one after the other with guards around them, ignoring the arenas' sizes."""
    ends = {"inputs": 0, "outputs": 0}
    placed = []
    for _ in range(launches):
        slots = {}
        for array in case.arrays:
            arena = "inputs" if array.role == "in" else "outputs"
            slots[array.name], ends[arena] = place(
                arena, ends[arena], array.shape, array.dtype, array.row_padding, array.transposed
            )
            ends[arena] -= GUARD_BYTES  # two neighbours share a guard
        placed.append(slots)
    return Layout(case, tuple(placed), {name: end + GUARD_BYTES for name, end in ends.items()})


# Fresh inputs, seeded from `os.urandom`.


def generator(device: str) -> Any:
    """Return a torch generator on `device`, seeded from `os.urandom`."""
    return torch.Generator(device=device).manual_seed(int.from_bytes(os.urandom(8), "big") >> 1)


def draw(array: Array, fill: str, source: Any) -> Any:
    """Return a contiguous random tensor of the array's shape and dtype, drawn by the fill."""
    device = source.device
    if not array.dtype.startswith(("float", "bfloat")):
        high = 256 if array.dtype == "uint8" else 1 << 16
        return torch.randint(0, high, array.shape, generator=source, device=device, dtype=getattr(torch, array.dtype))
    values = torch.randn(array.shape, generator=source, device=device, dtype=torch.float32)
    chosen = random.SystemRandom().choice(fill.split("|"))  # again for each array of each launch
    return FILLS[chosen](values, source).to(getattr(torch, array.dtype))


def _heavy(values: Any, source: Any) -> Any:
    return values * torch.exp(3 * torch.randn(values.shape, generator=source, device=values.device))


def _large(values: Any, source: Any) -> Any:
    offset = torch.rand(values.shape[:1] + (1,) * (values.dim() - 1), generator=source, device=values.device)
    sign = torch.where(torch.arange(values.shape[0], device=values.device) % 2 == 0, 1.0, -1.0)
    return values + (5_000 + 5_000 * offset) * sign.reshape(offset.shape)


def _flat(values: Any, source: Any) -> Any:
    offset = torch.randn(values.shape[:1] + (1,) * (values.dim() - 1), generator=source, device=values.device)
    return offset + 1e-3 * values


def _lowest(values: Any, source: Any) -> Any:
    return torch.where(values < 1, -1e30, -1.001e30)  # about one value in six is lower than the others


def _minus_inf(values: Any, source: Any) -> Any:
    holes = torch.rand(values.shape, generator=source, device=values.device) < 0.1
    holes[..., 0] = False  # a row of minus infinity alone has no softmax
    return values.masked_fill(holes, float("-inf"))


FILLS = {
    "normal": lambda values, source: values,  # standard normal
    "heavy": _heavy,  # each element by its own factor exp(3 × standard normal), usually 1e-4 to 1e4
    "large": _large,  # rows around ±5,000 … ±10,000
    "flat": _flat,  # rows around an offset of their own, with a variance of 1e-6
    "below": lambda values, source: values - 200.0,  # exp of every value is 0 in float32
    "lowest": _lowest,  # near -1e30: smaller than what a masked element is often loaded as
    "minus_inf": _minus_inf,  # one value in ten is minus infinity
}


# The guards around outputs.


def padded(slot: Slot) -> bool:
    """Whether the tensor has padding between its rows."""
    return slot.span != math.prod(slot.shape)


def untouched(arena: Arena, launches: Sequence[Sequence[Slot]]) -> bool:
    """Whether the guards of all launches still hold the poison, checked in one pass. Padding is not checked.

    Each launch lays out its slots in the same order, so the gaps after them have equal distances.
    """
    slots = sorted({slot.offset: slot for launch in launches for slot in launch}.values(), key=lambda one: one.offset)
    ends = [slot.offset + slot.bytes for slot in slots]
    raw = arena.bytes_at(0, ends[-1] + GUARD_BYTES)
    least = [raw[slots[0].offset - GUARD_BYTES : slots[0].offset].amin(), raw[ends[-1] :].amin()]
    gaps = [(end, after.offset - end) for end, after in zip(ends, slots[1:], strict=False)]
    for first in range(len(launches[0])):
        least += [part.amin() for part in _rows(raw, gaps[first :: len(launches[0])])]
    return bool((torch.stack(least) == POISON_BYTE).all())  # no byte is larger than the poison


def _rows(raw: Any, gaps: Sequence[tuple[int, int]]) -> list[Any]:
    """Return the gaps as one tensor if their lengths and distances are equal, else one by one."""
    if not gaps:
        return []
    length, pitch = gaps[0][1], gaps[1][0] - gaps[0][0] if len(gaps) > 1 else 0
    if gaps == [(gaps[0][0] + number * pitch, length) for number in range(len(gaps))]:
        return [raw.as_strided((len(gaps), length), (pitch, 1), gaps[0][0])]
    return [raw[start : start + size] for start, size in gaps]


def written_outside(arena: Arena, slot: Slot) -> list[int]:
    """Return the offsets, in elements from the tensor's start, of writes to its guards and padding."""
    item = slot.bytes // slot.span
    if not padded(slot) and not _written(arena, slot):
        return []
    raw = arena.bytes_at(slot.offset - GUARD_BYTES, slot.bytes + 2 * GUARD_BYTES)
    elements = (raw.view(-1, item) != POISON_BYTE).any(-1)
    first = GUARD_BYTES // item
    own = elements[first : first + slot.span]
    own.as_strided(slot.shape, slot.strides, storage_offset=first).fill_(False)
    return (torch.nonzero(elements).flatten() - first).tolist()


def _written(arena: Arena, slot: Slot) -> bool:
    before = arena.bytes_at(slot.offset - GUARD_BYTES, GUARD_BYTES)
    after = arena.bytes_at(slot.offset + slot.bytes, GUARD_BYTES)
    return bool((before != POISON_BYTE).any() | (after != POISON_BYTE).any())


_HOST_BYTES = 1 << 28
_OWN_BYTES = 1 << 21
_SCRATCH_BYTES = 256
_COPIES_IN = 12
_FLOAT64_COPIES = 6  # of the largest array: inputs, expected values, errors and the oracle's temporaries


class Buffers:
    """The arenas on one device ("cuda" or "simulator"): `inputs`, read-only for workers, and `outputs`.

    A third arena, `own`, is for trusted workers, whose answers there are the expected ones.

    If they are `staged`, workers have memory of their own. It is filled before a round starts, and copied back after
    the round has ended, both untimed.
    """

    def __init__(self, device: str, machine: Machine | None = None, staged: bool = False) -> None:
        self.machine = machine  # for exercises that draw by it
        self.staged = staged
        self.torch_device = "cuda" if device == "cuda" else "cpu"
        size = _HOST_BYTES
        if device == "cuda":
            torch.cuda.empty_cache()  # frees the memory of earlier measurements
            size = health.arena_bytes(health.available(), staged)
        self.arenas: dict[str, Arena]
        self.arenas = {name: self._made(name, size) for name in ("inputs", "outputs")}
        self._own = self._made("own", _OWN_BYTES)
        self._is_handed = False
        self.zeroed = False  # whether the outputs, but not their guards, begin as 0
        self._source = generator(self.torch_device)
        self._secret: Any = None  # the private inputs, laid out as in the input arena; grows on demand
        self._target: Any = None
        self._given: Any = None
        self._scratch: Any = None  # target and source of a small copy

    def _made(self, name: str, size: int) -> Arena:
        on_gpu, sealed = self.torch_device == "cuda", name == "inputs"
        if on_gpu and not self.staged:
            return CudaArena.create(size, sealed)
        host = HostArena.create(size, sealed)
        return StagedArena(host, on_gpu) if self.staged and not sealed else host

    def capacity(self, case: Case) -> int:
        """Return how many launches with separate inputs and outputs fit."""
        used = laid(case, 1).used
        return min(arena.size // max(1, used[name]) for name, arena in self.arenas.items())

    def fits(self, case: Case, launches: int = 1) -> bool:
        """Whether the launches fit the arenas, and private inputs and float64 temporaries fit the free memory."""
        if self.capacity(case) < launches:
            return False
        elements = max(math.prod(array.shape) for array in case.arrays)
        return not self.short(laid(case, launches).used["inputs"], _FLOAT64_COPIES * 8 * elements)

    def short(self, private: int | None = None, besides: int = 0) -> bool:
        """Whether too little memory is free for `private` bytes of inputs (default: an arena) and `besides` more."""
        if self.torch_device == "cpu":
            return False
        wanted = self.arenas["inputs"].size if private is None else private
        held = 0 if self._secret is None else self._secret.numel()
        return max(0, wanted - held) + besides >= health.available()

    def lay(self, case: Case, launches: int = 1) -> Layout:
        """Lay out the tensors of `launches` launches, or raise MachineLacks."""
        layout = laid(case, launches)
        if any(layout.used[name] > arena.size for name, arena in self.arenas.items()):
            raise MachineLacks(f"The case {case.name} needs more memory than this machine has free.")
        return layout

    def arenas_for(self, trusted: bool) -> dict[str, Arena]:
        return self.arenas | {"own": self._own} if trusted else self.arenas

    def apart(self, layout: Layout) -> Layout:
        """Return the layout with its outputs moved to the `own` arena and poisoned, or raise MachineLacks."""
        if layout.used["outputs"] > self._own.size:
            raise MachineLacks(f"The case {layout.case.name} cannot be measured: its outputs are too large.")
        self._own.bytes_at(0, self._own.size).fill_(POISON_BYTE)
        self.zeroed = False
        self.settle()
        launches = tuple(
            {name: slot if slot.arena == "inputs" else replace(slot, arena="own") for name, slot in launch.items()}
            for launch in layout.launches
        )
        return replace(layout, launches=launches)

    def fill(self, layout: Layout, own_draw: Callable[[Case, Any, Any], Tensors] | None = None) -> None:
        """Draw fresh inputs for every launch into private memory, with NaN in the guards."""
        count = layout.used["inputs"]
        self._make_room(count)
        self._secret[: count & ~1].view(torch.int16).fill_(INPUT_GUARD)
        self._aim(count)
        for launch in layout.launches:
            if own_draw is not None:
                with authored("`draw`", layout.case):
                    drawn = own_draw(layout.case, self._source, self.machine)
                    for array in layout.case.inputs:
                        self._private(launch[array.name]).copy_(drawn[array.name])
                continue
            for array in layout.case.inputs:
                self._private(launch[array.name]).copy_(draw(array, layout.case.fill, self._source))
        self.settle()

    def hand_over(self) -> None:
        """Copy the drawn inputs to the workers' arena, and wait for the copy."""
        self._hand(self._target, self._given)

    def stage(self) -> None:
        """Copy the drawn inputs to where workers fill their own memory from, once per draw."""
        if not self._is_handed:
            self.hand_over()
            self._is_handed = True

    def collect(self, names: Sequence[str], layout: Layout) -> None:
        """Copy what a worker has pushed to these arenas."""
        for name in names:
            arena = self.arenas_for(trusted=True)[name]
            assert isinstance(arena, StagedArena)
            arena.pull(layout.spans[name])

    def copy_in_s(self, count: int) -> float:
        """Return the lower quartile of the seconds that `hand_over` takes for `count` bytes.

        If memory is short of private inputs of that size, copy the outputs instead. A staged copy is not timed.
        """
        if self.staged:
            return 0.0
        source = None
        try:
            self._make_room(count)
        except RuntimeError as error:
            if not health.out_of_memory(error):
                raise
            source = self.arenas["outputs"].bytes_at(0, count)
        seconds = []
        for _ in range(_COPIES_IN):
            self._aim(count, source)
            self.settle()
            started = time.perf_counter()
            self.hand_over()
            seconds.append(time.perf_counter() - started)
        return quartile(seconds[2:])

    def _make_room(self, count: int) -> None:
        if self._secret is None or self._secret.numel() < count:
            self._secret = self._given = None  # frees the old one before the new one is allocated
            self._secret = torch.empty(count, dtype=torch.uint8, device=self.torch_device)

    def _aim(self, count: int, source: Any = None) -> None:
        """Make the tensors that `hand_over` copies: beforehand, since `hand_over` is timed."""
        if self._scratch is None:
            self._scratch = torch.zeros(2, _SCRATCH_BYTES, dtype=torch.uint8, device=self.torch_device).unbind()
        self._is_handed = False
        self._target = self.arenas["inputs"].bytes_at(0, count)
        self._given = self._secret[:count] if source is None else source

    def poison(self, layout: Layout) -> None:
        """Fill the outputs and their guards with the poison, and wait for that."""
        self.zeroed = False
        self.arenas["outputs"].bytes_at(0, layout.used["outputs"]).fill_(POISON_BYTE)
        self.settle()

    def zero(self, layout: Layout) -> None:
        """Fill the outputs with 0, but not their guards."""
        self.zeroed = True
        for launch in layout.launches:
            for slot in self._outputs(layout, launch):
                self._view(slot).zero_()
        self.settle()

    def clear(self) -> None:
        """Clear the whole output arena, so that no worker finds another's data."""
        self.arenas["outputs"].clear()
        self.settle()

    def rest(self) -> None:
        """Free the memory that only a grading needs: between gradings, the GPU is the learner's."""
        self._secret = self._scratch = self._target = self._given = None
        if self.torch_device == "cuda":
            torch.cuda.empty_cache()

    def wake(self) -> None:
        """Make the GPU switch to this process, by a small copy of private bytes.

        Before `hand_over` this takes the switch out of its time and warms the host's caches. After `hand_over` it waits
        for work that another process started as soon as the inputs arrived.
        """
        self._hand(*self._scratch)

    def _hand(self, target: Any, given: Any) -> None:
        """Copy and wait. The clock includes the host's part of this."""
        if target.is_cuda:
            copy_on_gpu(target, given)
        else:
            target.copy_(given)

    def settle(self) -> None:
        """Wait for this process's own work on the device."""
        if self.torch_device == "cuda":
            torch.cuda.synchronize()

    def answers(self, layout: Layout) -> list[tuple[Any, ...]]:
        """Return the current outputs per launch in float64, as the expected answers of a trusted worker."""
        return [
            tuple(self._view(slot).to(torch.float64, copy=True) for slot in self._outputs(layout, launch))
            for launch in layout.launches
        ]

    def expected(self, layout: Layout, exercise: Exercise) -> list[tuple[Any, ...]]:
        """Return the oracle's answers to the current inputs per launch, in float64."""
        return [answers for _, _, answers in self._expected(layout, exercise, None)]

    def try_suspects(self, layout: Layout, exercise: Exercise) -> None:
        """Call every suspect on the current inputs and outputs, or raise UnusableExercise if one fails."""
        for launch, inputs, answers in self._expected(layout, exercise, None):
            for slot, answer in zip(self._outputs(layout, launch), answers, strict=True):
                double = doubled(self._view(slot), answer, inputs)
                for suspect in exercise.suspects:
                    with authored(f"The suspect “{suspect.sentence}”", layout.case):
                        explains(suspect, double)

    def check(
        self, layout: Layout, exercise: Exercise, expected: Sequence[tuple[Any, ...]] | None = None
    ) -> Mismatch | None:
        """Return the mismatch of the first output that differs from `expected` (default: the oracle's answers)."""
        guarded = untouched(self.arenas["outputs"], [self._outputs(layout, launch) for launch in layout.launches])
        if guarded and self._all_right(layout, exercise, expected):
            return None
        for launch, inputs, answers in self._expected(layout, exercise, expected):
            for array, answer in zip(layout.case.outputs, answers, strict=True):
                slot = launch[array.name]
                got = self._view(slot)
                looked_at = guarded and not padded(slot)
                outside = [] if looked_at else written_outside(self.arenas[slot.arena], slot)
                found = compare(array.name, got, answer, _budget(layout, exercise), outside)
                if found is None:
                    continue
                if expected is None and bool(answer.isnan().any()):
                    raise UnusableExercise(
                        f"The oracle gives NaN in the case {layout.case.name!r}, so that nothing can be right: change "
                        "the oracle, or give the case another fill."
                    )
                sure = got.is_floating_point()  # a bug may write an integer that looks like poison
                nothing = sure and found.unwritten == found.wrong  # the poison is NaN, which some bugs write
                suspects = [suspect for suspect in exercise.suspects if suspect.missing or not nothing]
                sentence = suspected(got, answer, inputs, suspects)
                unwritten = 0 if sentence else found.unwritten
                return Mismatch(**{**vars(found), "suspect": sentence, "unwritten": unwritten})
        return None

    def _all_right(self, layout: Layout, exercise: Exercise, expected: Sequence[tuple[Any, ...]] | None) -> bool:
        """Whether all outputs are right, in one pass with one wait; False if that pass is no faster here."""
        outputs = self._outputs(layout, layout.launches[0])
        if not fused_compare.saves(self.torch_device) or any(padded(slot) for slot in outputs):
            return False
        wrong = torch.zeros((), dtype=torch.int64, device=self.torch_device)
        for launch, _, answers in self._expected(layout, exercise, expected):
            for slot, answer in zip(self._outputs(layout, launch), answers, strict=True):
                fused_compare.add_wrong(self._view(slot), answer, _budget(layout, exercise), wrong)
        return not int(wrong)

    def _expected(
        self, layout: Layout, exercise: Exercise, expected: Sequence[tuple[Any, ...]] | None
    ) -> Iterator[tuple[dict[str, Slot], dict[str, Any], tuple[Any, ...]]]:
        """Yield each launch's slots, inputs and expected outputs."""
        for number, launch in enumerate(layout.launches):
            inputs = {array.name: self._private(launch[array.name]) for array in layout.case.inputs}
            answers = self._by_oracle(layout.case, exercise, inputs) if expected is None else expected[number]
            yield launch, inputs, tuple(answer.to(self.torch_device) for answer in answers)

    @staticmethod
    def _by_oracle(case: Case, exercise: Exercise, inputs: Tensors) -> tuple[Any, ...]:
        with authored("The oracle", case):
            answer = exercise.oracle({name: value.double() for name, value in inputs.items()})
            answers = answer if isinstance(answer, tuple) else (answer,)
            shapes, wanted = [tuple(each.shape) for each in answers], [array.shape for array in case.outputs]
            if shapes != wanted:
                raise ValueError(f"it returns the shapes {shapes}, and the outputs have {wanted}")
        return answers

    def _outputs(self, layout: Layout, launch: dict[str, Slot]) -> list[Slot]:
        return [launch[array.name] for array in layout.case.outputs]

    def warm(self, cases: Sequence[Case]) -> None:
        """Compile the comparison for the outputs of these cases."""
        if self.torch_device == "cuda":
            fused_compare.warm(sorted({array.dtype for case in cases for array in case.outputs}))

    def unwritten(self, layout: Layout) -> bool:
        """Whether no element of any output was written."""
        slots = [slot for launch in layout.launches for slot in self._outputs(layout, launch)]
        return all(bool(poisoned(self._view(slot)).all()) for slot in slots)

    def _private(self, slot: Slot) -> Any:
        raw = self._secret[slot.offset : slot.offset + slot.bytes].view(getattr(torch, slot.dtype))
        return raw.as_strided(slot.shape, slot.strides)

    def _view(self, slot: Slot) -> Any:
        return tensor(self.arenas_for(trusted=True)[slot.arena], slot)


def _budget(layout: Layout, exercise: Exercise) -> Budget:
    return layout.case.budget or exercise.budget
