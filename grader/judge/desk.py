"""The arbiter's desk: where inputs are drawn, outputs are poisoned, and answers are checked.

The worker sees the arenas alone. What the oracle reads are private copies of the inputs, so that nothing a submission
does to its inputs changes what is expected of it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from grader.errors import MachineLacks
from grader.exercise import Budget, Case, Exercise, Tensors
from grader.judge import fused, guards, memory
from grader.judge.compare import compare, poisoned, suspected
from grader.judge.inputs import draw, generator
from grader.judge.machine import Machine
from grader.judge.spread import Spread, laid
from grader.judge.statistics import quartile
from grader.protocol.layout import INPUT_GUARD, POISON_BYTE, Slot
from grader.protocol.memory import CudaArena, HostArena, copy_on_gpu, tensor
from grader.verdict import Mismatch

__all__ = ["Desk"]

_HOST_BYTES = 1 << 28
_OWN_BYTES = 1 << 21
_SCRATCH_BYTES = 256
_COPIES_IN = 12
_FLOAT64_COPIES = 6  # of the largest array: inputs, expected values, errors, and what the oracle needs besides


class Desk:
    """Two arenas on one device ("cuda" or "simulator"): `inputs`, read-only for workers, and `outputs`. A third, `own`,
    is for trusted workers alone: what they find there is expected of a submission."""

    def __init__(self, device: str, machine: Machine | None = None) -> None:
        import torch

        self.machine = machine  # for exercises that ask about it
        self.torch_device = "cuda" if device == "cuda" else "cpu"
        make: Any = CudaArena if device == "cuda" else HostArena
        size = _HOST_BYTES
        if device == "cuda":
            torch.cuda.empty_cache()  # of what was measured before
            size = memory.arena_bytes(memory.available())
        self.arenas: dict[str, CudaArena | HostArena] = {
            "inputs": make.create(size, sealed=True),
            "outputs": make.create(size, sealed=False),
        }
        self._own: CudaArena | HostArena = make.create(_OWN_BYTES, sealed=False)
        self._source = generator(self.torch_device)
        self._secret: Any = None  # bytes laid out as in the input arena; grows with what is asked
        self._target: Any = None
        self._given: Any = None
        self._scratch: Any = None  # to and from

    def capacity(self, case: Case) -> int:
        """How many launches with inputs and outputs of their own fit."""
        used = laid(case, 1).used
        return min(arena.size // max(1, used[name]) for name, arena in self.arenas.items())

    def fits(self, case: Case, launches: int = 1) -> bool:
        """Whether the launches fit the arenas, and what they need besides the memory that is free: private inputs, and
        the oracle and the comparison in float64.
        """
        if self.capacity(case) < launches:
            return False
        elements = max(math.prod(array.shape) for array in case.arrays)
        return not self.short(laid(case, launches).used["inputs"], _FLOAT64_COPIES * 8 * elements)

    def short(self, private: int | None = None, besides: int = 0) -> bool:
        """Whether too little memory is free for so many bytes of private inputs, by default all that the arena can
        take, and for so many besides.
        """
        if self.torch_device == "cpu":
            return False
        wanted = self.arenas["inputs"].size if private is None else private
        held = 0 if self._secret is None else self._secret.numel()
        return max(0, wanted - held) + besides >= memory.available()

    def lay(self, case: Case, launches: int = 1) -> Spread:
        """Places the tensors of `launches` launches.

        Raises:
            MachineLacks: they do not fit.
        """
        spread = laid(case, launches)
        if any(spread.used[name] > arena.size for name, arena in self.arenas.items()):
            raise MachineLacks(f"The case {case.name} needs more memory than this machine has free.")
        return spread

    def arenas_for(self, trusted: bool) -> dict[str, CudaArena | HostArena]:
        """What a worker maps."""
        return self.arenas | {"own": self._own} if trusted else self.arenas

    def apart(self, spread: Spread) -> Spread:
        """The same inputs, and outputs where no submission can see them, poisoned.

        Raises:
            MachineLacks: the outputs are too large for that.
        """
        if spread.used["outputs"] > self._own.size:
            raise MachineLacks(f"The case {spread.case.name} cannot be measured: its outputs are too large.")
        self._own.bytes_at(0, self._own.size).fill_(POISON_BYTE)
        self.settle()
        launches = tuple(
            {name: slot if slot.arena == "inputs" else replace(slot, arena="own") for name, slot in launch.items()}
            for launch in spread.launches
        )
        return replace(spread, launches=launches)

    def deal(self, spread: Spread, own_draw: Callable[[Case, Any, Any], Tensors] | None = None) -> None:
        """Draws fresh inputs for every launch, NaN all around them, in memory that no worker maps."""
        import torch

        count = spread.used["inputs"]
        self._make_room(count)
        self._secret[: count & ~1].view(torch.int16).fill_(INPUT_GUARD)
        self._aim(count)
        for launch in spread.launches:
            if own_draw is not None:
                for name, value in own_draw(spread.case, self._source, self.machine).items():
                    self._private(launch[name]).copy_(value)
                continue
            for array in spread.case.inputs:
                self._private(launch[array.name]).copy_(draw(array, spread.case.fill, self._source))
        self.settle()

    def hand_over(self) -> None:
        """Copies the inputs that were dealt to where the workers see them, and waits until they are there."""
        self._hand(self._target, self._given)

    def copy_in_s(self, count: int) -> float:
        """Seconds that `hand_over` takes for so many bytes: the lower quartile of some, with nobody else at work.

        Where other judges leave no room for private inputs of that size, the outputs are copied: memory like any other.
        """
        source = None
        try:
            self._make_room(count)
        except RuntimeError as error:
            if not memory.out_of_memory(error):
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
        import torch

        if self._secret is None or self._secret.numel() < count:
            self._secret = self._given = None  # the old one is let go before the new one is made
            self._secret = torch.empty(count, dtype=torch.uint8, device=self.torch_device)

    def _aim(self, count: int, source: Any = None) -> None:
        """Makes the tensors that `hand_over` copies. Done beforehand, since `hand_over` is timed."""
        if self._scratch is None:
            import torch

            self._scratch = torch.zeros(2, _SCRATCH_BYTES, dtype=torch.uint8, device=self.torch_device).unbind()
        self._target = self.arenas["inputs"].bytes_at(0, count)
        self._given = self._secret[:count] if source is None else source

    def poison(self, spread: Spread) -> None:
        """Fills the outputs and their guards with the poison, and waits until that is done."""
        self._bytes(spread, "outputs").fill_(POISON_BYTE)
        self.settle()

    def clear(self) -> None:
        """Takes from the outputs' arena, all of it, what a worker may have left there for another."""
        self.arenas["outputs"].clear()
        self.settle()

    def rest(self) -> None:
        """Lets go of memory that only a grading needs: between two, the GPU is the learner's."""
        self._secret = self._scratch = self._target = self._given = None
        if self.torch_device == "cuda":
            import torch

            torch.cuda.empty_cache()

    def wake(self) -> None:
        """Has the GPU switch to this process, by a small copy of private bytes.

        Before `hand_over` it leaves that no switch to wait for, and fills the host's caches. After it, it waits for
        whoever had the GPU begin as soon as the inputs were there.
        """
        self._hand(*self._scratch)

    def _hand(self, target: Any, given: Any) -> None:
        """Copies, and waits: what the host does here is in the clock."""
        if self.torch_device == "cpu":
            target.copy_(given)
        else:
            copy_on_gpu(target, given)

    def settle(self) -> None:
        """Waits for this process's own work on the device."""
        if self.torch_device == "cuda":
            import torch

            torch.cuda.synchronize()

    def answers(self, spread: Spread) -> list[tuple[Any, ...]]:
        """What stands in the outputs now, in float64, launch by launch: a trusted worker's answers, to be expected."""
        import torch

        return [
            tuple(self._view(slot).to(torch.float64, copy=True) for slot in self._outputs(spread, launch))
            for launch in spread.launches
        ]

    def expected(self, spread: Spread, exercise: Exercise) -> list[tuple[Any, ...]]:
        """What the oracle says of the inputs that were dealt, in float64, launch by launch."""
        return [answers for _, _, answers in self._expected(spread, exercise, None)]

    def check(
        self, spread: Spread, exercise: Exercise, expected: Sequence[tuple[Any, ...]] | None = None
    ) -> Mismatch | None:
        """The first output, launch by launch, that is not as `expected`: by default, what the oracle says."""
        guarded = guards.untouched(
            self.arenas["outputs"], [self._outputs(spread, launch) for launch in spread.launches]
        )
        if guarded and self._all_right(spread, exercise, expected):
            return None
        for launch, inputs, answers in self._expected(spread, exercise, expected):
            for array, answer in zip(spread.case.outputs, answers, strict=True):
                slot = launch[array.name]
                got = self._view(slot)
                looked_at = guarded and not guards.padded(slot)
                outside = [] if looked_at else guards.outside(self.arenas[slot.arena], slot)
                found = compare(array.name, got, answer, _budget(spread, exercise), outside)
                if found is None:
                    continue
                sure = got.is_floating_point()  # an integer that looks unwritten may be a bug's
                nothing = sure and found.unwritten == found.wrong  # what was never written is NaN, as some bugs write
                suspects = [suspect for suspect in exercise.suspects if suspect.missing or not nothing]
                sentence = suspected(got, answer, inputs, suspects)
                unwritten = 0 if sentence else found.unwritten
                return Mismatch(**{**vars(found), "suspect": sentence, "unwritten": unwritten})
        return None

    def _all_right(self, spread: Spread, exercise: Exercise, expected: Sequence[tuple[Any, ...]] | None) -> bool:
        """Whether all of it is, found in one pass and waited for once; where that saves nothing it says no."""
        outputs = self._outputs(spread, spread.launches[0])
        if not fused.saves(self.torch_device) or any(guards.padded(slot) for slot in outputs):
            return False
        import torch

        wrong = torch.zeros((), dtype=torch.int64, device=self.torch_device)
        for launch, _, answers in self._expected(spread, exercise, expected):
            for slot, answer in zip(self._outputs(spread, launch), answers, strict=True):
                fused.add_wrong(self._view(slot), answer, _budget(spread, exercise), wrong)
        return not int(wrong)

    def _expected(
        self, spread: Spread, exercise: Exercise, expected: Sequence[tuple[Any, ...]] | None
    ) -> Iterator[tuple[dict[str, Slot], dict[str, Any], tuple[Any, ...]]]:
        """Of each launch where its tensors lie, its inputs, and what is expected of its outputs."""
        for number, launch in enumerate(spread.launches):
            inputs = {array.name: self._private(launch[array.name]) for array in spread.case.inputs}
            if expected is None:
                answers = _tuple(exercise.oracle({name: value.double() for name, value in inputs.items()}))
            else:
                answers = expected[number]
            yield launch, inputs, tuple(answer.to(self.torch_device) for answer in answers)  # some are on the CPU

    def _outputs(self, spread: Spread, launch: dict[str, Slot]) -> list[Slot]:
        return [launch[array.name] for array in spread.case.outputs]

    def warm(self, cases: Sequence[Case]) -> None:
        """Has the comparison compiled for the outputs of these cases."""
        if self.torch_device == "cuda":
            fused.warm(sorted({array.dtype for case in cases for array in case.outputs}))

    def unwritten(self, spread: Spread) -> bool:
        """Whether no element of any output was written."""
        slots = [slot for launch in spread.launches for slot in self._outputs(spread, launch)]
        return all(bool(poisoned(self._view(slot)).all()) for slot in slots)

    def _bytes(self, spread: Spread, arena: str) -> Any:
        return self.arenas[arena].bytes_at(0, spread.used[arena])

    def _private(self, slot: Slot) -> Any:
        import torch

        raw = self._secret[slot.offset : slot.offset + slot.bytes].view(getattr(torch, slot.dtype))
        return raw.as_strided(slot.shape, slot.strides)

    def _view(self, slot: Slot) -> Any:
        return tensor(self.arenas_for(trusted=True)[slot.arena], slot)


def _budget(spread: Spread, exercise: Exercise) -> Budget:
    return spread.case.budget or exercise.budget


def _tuple(expected: Any) -> tuple[Any, ...]:
    return expected if isinstance(expected, tuple) else (expected,)
