"""Look at the compiled code of the kernels that a call launches: how many bytes does a thread load at a time?

On a GPU it is the code that ran. In the simulator the kernels that were interpreted are compiled beside it, for a GPU
that is not there. A submission can lie here: what is found is a sentence, while values and times are the arbiter's.
"""

from __future__ import annotations

import contextlib
import inspect
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from grader.worker.compile_only import CannotBeSeen, CompileFailed, Compiler, described
from grader.worker.loads import (
    asynchronous_bytes,
    elements_of_a_thread,
    has_bulk_copies,
    load_widths,
    run_of_a_thread,
    without_masks,
)
from grader.worker.true_hints import checked_hints

__all__ = ["Launch", "NarrowLoads", "NoTritonKernel", "WideLoads", "share_of_wide"]

_WITHOUT_A_GPU = 90  # the compute capability to compile for
_LEAST_SHARE = 1 / 3  # of what is loaded: a kernel may have a narrow copy of its loop, for the end of a row, beside it


class NarrowLoads(RuntimeError):
    """The loads are narrower than is asked for."""


class NoTritonKernel(RuntimeError):
    """The call launched no kernel of Triton's."""


@dataclass(frozen=True)
class Launch:
    """A kernel that was launched: its texts, and how many programs of how many threads."""

    name: str
    ptx: str
    ttgir: str
    programs: int
    threads: int
    capability: int = _WITHOUT_A_GPU

    def loaded(self, wide_bytes: int) -> tuple[int, int]:
        """The bytes that all threads load, if each load runs once, by loads as wide as that; and by all loads."""
        widths = load_widths(self.ptx) + asynchronous_bytes(self.ptx)
        if has_bulk_copies(self.ptx):
            widths[wide_bytes] += 1
        each = self.programs * self.threads
        wide = sum(width * count for width, count in widths.items() if width >= wide_bytes)
        return each * wide, each * sum(width * count for width, count in widths.items())


def share_of_wide(launches: list[Launch], wide_bytes: int) -> float:
    """The share of the loaded bytes that come by loads of at least `wide_bytes`."""
    both = [launch.loaded(wide_bytes) for launch in launches]
    return sum(wide for wide, _ in both) / max(1, sum(loaded for _, loaded in both))


class WideLoads:
    """Calls `entry`, and looks once at each shape of its first argument; what is too narrow raises."""

    def __init__(self, entry: Callable[..., Any], wide_bytes: int) -> None:
        self.entry, self.wide_bytes = entry, wide_bytes
        self._known: set[Any] = set()
        self._compiler = Compiler()
        if os.environ.get("TRITON_INTERPRET") == "1":
            self._compiler.start()  # while the first cases are interpreted

    def __call__(self, *tensors: Any) -> None:
        """Raises NarrowLoads, NoTritonKernel, FalseHint, CompileFailed, and whatever the entry raises."""
        shape = tensors[0].shape
        if shape in self._known:
            self.entry(*tensors)
            return
        if tensors[0].is_cuda:
            self.entry(*tensors)  # what tunes itself has tuned itself after this
            with _launched() as launches:
                self.entry(*tensors)
        else:
            with _interpreted() as seen, checked_hints():
                self.entry(*tensors)
            try:
                launches = self._compiled(seen)
            except CannotBeSeen as error:
                print(f"The grader did not look at the width of the loads, since {error}.", flush=True)
                self._known.add(shape)
                return
        self._judge(launches)
        self._known.add(shape)

    def _judge(self, launches: list[Launch]) -> None:
        if not launches:
            raise NoTritonKernel("no Triton kernel was launched")
        if share_of_wide(launches, self.wide_bytes) >= _LEAST_SHARE:
            return
        worst = max(launches, key=lambda one: one.loaded(self.wide_bytes)[1] - one.loaded(self.wide_bytes)[0])
        widths = load_widths(worst.ptx) + asynchronous_bytes(worst.ptx)
        counted = max(widths.items(), key=lambda item: (item[0] * item[1], item[0]), default=(0, 0))
        which = "its loads" if counted[1] == widths.total() else f"{counted[1]} of its {widths.total()} loads"
        raise NarrowLoads(
            f"{worst.name}: {which} are {counted[0]} bytes wide for a thread, where {self.wide_bytes} are asked for; "
            f"{self._why(worst)}"
        )

    def _why(self, launch: Launch) -> str:
        """What keeps them narrow: too few elements, the addresses, or the mask."""
        elements, run = elements_of_a_thread(launch.ttgir), run_of_a_thread(launch.ttgir)
        if run >= min(4, elements) and elements < 4:
            return f"a block gives each of its {launch.threads} threads {elements} elements"
        if run < 4:
            return f"the compiler gave a thread runs of {run} elements, for it does not know that 4 lie together"
        # A load takes over the layout of a store that depends on it, so that its own addresses may be unknown here.
        try:
            bare = self._compiler.lower(without_masks(launch.ttgir), launch.capability)
        except CompileFailed:
            return "the addresses or the mask do not allow more"
        if share_of_wide([replace(launch, ptx=bare)], self.wide_bytes) >= _LEAST_SHARE:
            return "the addresses allow more, and the mask does not"
        return "the layout allows more, and the addresses that are loaded from do not"

    def _compiled(self, seen: dict[str, tuple[Path, dict[str, Any], int]]) -> list[Launch]:
        launches = []
        for name, (path, arguments, programs) in seen.items():
            told = {key: described(value) for key, value in arguments.items()}
            found = self._compiler.compile(path, name, told, _WITHOUT_A_GPU)
            launches.append(Launch(name, found["ptx"], found["ttgir"], programs, 32 * found["num_warps"]))
        return launches


def _named(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a launch by name, those that were left out as well."""
    parameters = inspect.signature(function).parameters
    left_out = {name: each.default for name, each in parameters.items() if each.default is not each.empty}
    return left_out | dict(zip(parameters, args, strict=False)) | kwargs


def _count(grid: Any, named: dict[str, Any]) -> int:
    return math.prod(grid(named) if callable(grid) else grid)


@contextlib.contextmanager
def _launched() -> Iterator[list[Launch]]:
    """The kernels that run on the GPU meanwhile, each launch."""
    from triton.runtime.jit import JITFunction

    launches: list[Launch] = []
    before = JITFunction.run

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        kernel = before(self, *args, grid=grid, warmup=warmup, **kwargs)
        if kernel is not None and not warmup:
            named = _named(self.fn, args, kwargs)
            threads = 32 * kernel.metadata.num_warps
            asm = kernel.asm
            capability = kernel.metadata.target.arch
            launches.append(Launch(self.__name__, asm["ptx"], asm["ttgir"], _count(grid, named), threads, capability))
        return kernel

    JITFunction.run = run
    try:
        yield launches
    finally:
        JITFunction.run = before


@contextlib.contextmanager
def _interpreted() -> Iterator[dict[str, tuple[Path, dict[str, Any], int]]]:
    """The kernels that the interpreter runs meanwhile, by name, with the arguments of the last launch."""
    from triton.runtime import interpreter

    seen: dict[str, tuple[Path, dict[str, Any], int]] = {}
    executor = interpreter.GridExecutor
    before = executor.__call__

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        named = _named(self.fn, args, kwargs)
        programs = _count(self.grid, named)
        seen[self.fn.__name__] = Path(self.fn.__code__.co_filename), named, programs
        return before(self, *args, **kwargs)

    executor.__call__ = call
    try:
        yield seen
    finally:
        executor.__call__ = before
