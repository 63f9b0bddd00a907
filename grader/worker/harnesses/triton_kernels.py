"""Look whether what a kernel tells Triton's compiler is true: its interpreter has the values, and passes hints over."""

from __future__ import annotations

import contextlib
import inspect
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from grader.worker.toolchain.compile_only import CannotBeSeen, CompileFailed, Compiler, described

# The loads from global memory in a text of PTX, and what the text of TritonGPU IR tells of them.

_LINE_COMMENT = re.compile(r"//[^\n]*")
_BLOCK_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_LOAD = re.compile(r"(?<![\w.])ld(?P<parts>(?:\.[\w:]+)+)")
_LANES = re.compile(r"v(\d+)")
_TYPE = re.compile(r"[busf](\d+)")
_ASYNCHRONOUS = re.compile(
    r"(?<![\w.])cp\.async\.c[ag]\.shared[\w.:]*\.global[\w.:]*\s*\[[^]]*\]\s*,\s*\[[^]]*\]\s*,\s*(\w+)"
)
_BULK = re.compile(r"(?<![\w.])cp\.async\.bulk[\w.:]*\.shared[\w.:]*\.global")
_LOADED = re.compile(  # the second: a load of a loop with stages
    r"(?:tt\.load|ttg\.async_copy_global_to_local) .*: tensor<([\dx]+)x!tt\.ptr<\w+>, (#\w+)>"
)
_MASKED = re.compile(
    r"(\btt\.load %[\w#]+)(?:, %[\w#]+){1,2}"
    r"|(\bttg\.async_copy_global_to_local %[\w#]+, %[\w#]+) mask %[\w#]+(?: other %[\w#]+)?"
)
_LAYOUT = re.compile(r"^(#\w+) = #ttg\.blocked<\{sizePerThread = \[([\d, ]+)\]", re.MULTILINE)
_WARPS = re.compile(r'"ttg\.num-warps" = (\d+)')


def _without_comments(ptx: str) -> str:
    return _LINE_COMMENT.sub("", _BLOCK_COMMENT.sub(" ", ptx))


def load_widths(ptx: str) -> Counter[int]:
    """How many `ld` instructions from global memory move so many bytes of one thread: {16: 2, 4: 1}."""
    widths: Counter[int] = Counter()
    for found in _LOAD.finditer(_without_comments(ptx)):
        parts = found["parts"].split(".")[1:]
        sizes = [int(match[1]) for part in parts if (match := _TYPE.fullmatch(part))]
        if "global" in parts and sizes:
            lanes = [int(match[1]) for part in parts if (match := _LANES.fullmatch(part))]
            widths[(lanes or [1])[0] * sizes[-1] // 8] += 1
    return widths


def asynchronous_bytes(ptx: str) -> Counter[int]:
    """The same for `cp.async`, which copies from global to shared memory without a register in between."""
    sizes = (found[1] for found in _ASYNCHRONOUS.finditer(_without_comments(ptx)))
    return Counter(int(size, 0) for size in sizes if size[0].isdigit())


def has_bulk_copies(ptx: str) -> bool:
    """Whether the Tensor Memory Accelerator moves tiles (tensor descriptors)."""
    return _BULK.search(_without_comments(ptx)) is not None


def _layouts(ttgir: str) -> dict[str, list[int]]:
    return {name: [int(n) for n in sizes.split(",")] for name, sizes in _LAYOUT.findall(ttgir)}


def elements_of_a_thread(ttgir: str) -> int:
    """How many elements of the largest block that is loaded fall to one thread; less than 1 counts as 1."""
    warps = _WARPS.search(ttgir)
    threads = 32 * int(warps[1]) if warps else 128
    sizes = [prod(map(int, shape.split("x"))) for shape, _ in _LOADED.findall(ttgir)]
    return max([1, *(size // threads for size in sizes)])


def run_of_a_thread(ttgir: str) -> int:
    """How many neighbouring elements one thread holds in the layout of a load: the most among the loads of blocks."""
    layouts = _layouts(ttgir)
    return max([1, *(prod(layouts[name]) for _, name in _LOADED.findall(ttgir) if name in layouts)])


def without_masks(ttgir: str) -> str:
    """The same code with loads of everything: to find out whether a mask keeps them narrow."""
    return _MASKED.sub(lambda found: found[1] or found[2], ttgir)


# Look at the compiled code of the kernels that a call launches: how many bytes does a thread load at a time?
#
# On a GPU it is the code that ran. In the simulator the kernels that were interpreted are compiled beside it, for a GPU
# that is not there. A submission can lie here: what is found is a sentence, while values and times are the arbiter's.

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


# Look whether what a kernel tells Triton's compiler is true: its interpreter has the values, and passes hints over.

_NAMES = {"tt.divisibility": "multiple_of", "tt.contiguity": "max_contiguous", "tt.constancy": "max_constancy"}


class FalseHint(RuntimeError):
    """A hint does not hold for the values that it stands around."""


@contextlib.contextmanager
def checked_hints() -> Iterator[None]:
    """Kernels that the interpreter runs meanwhile raise FalseHint where one of their hints is false."""
    from triton.runtime.interpreter import TensorHandle

    before = TensorHandle.set_attr

    def set_attr(self: Any, key: str, values: Any) -> None:
        if key in _NAMES:
            _look(_NAMES[key], self, [int(value) for value in values])
        before(self, key, values)

    TensorHandle.set_attr = set_attr
    try:
        yield
    finally:
        TensorHandle.set_attr = before


def _look(name: str, handle: Any, values: list[int]) -> None:
    # Of pointers, neighbours lie an element apart; what they are multiples of is counted in bytes.
    is_pointer = hasattr(handle.dtype, "element_ty")
    step = max(1, handle.dtype.element_ty.primitive_bitwidth // 8) if is_pointer else 1
    data = np.atleast_1d(handle.data)
    for axis, value in enumerate(values):
        rows = np.moveaxis(data, axis, -1).reshape(-1, data.shape[axis]).astype(np.int64)
        if name == "multiple_of":
            first = rows.reshape(len(rows), -1, _run(rows, step))[:, :, 0]
            wrong = first[first % value != 0]
            if wrong.size:
                raise FalseHint(f"tl.{name}(…, {value}) is false: there is a {wrong[0]}")
            continue
        length = min(value, rows.shape[1])
        runs = rows.reshape(-1, length if rows.shape[1] % length == 0 else rows.shape[1])
        wrong = np.argwhere(np.diff(runs) != (step if name == "max_contiguous" else 0))
        if len(wrong):
            run, at = wrong[0]
            pair = (data.dtype.type(number) for number in runs[run, at : at + 2])
            raise FalseHint(f"tl.{name}(…, {value}) is false: neighbours in a run are {' and '.join(map(str, pair))}")


def _run(rows: Any, step: int) -> int:
    """The longest power of two so that all groups of as many elements hold neighbours."""
    longest = 1
    while rows.shape[1] % (2 * longest) == 0:
        if (np.diff(rows.reshape(len(rows), -1, 2 * longest)) != step).any():
            break
        longest *= 2
    return longest
