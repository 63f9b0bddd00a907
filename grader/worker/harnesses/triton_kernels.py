"""Check the width of the loads in a submission's Triton kernels, and whether its hints to the compiler are true.

On a GPU the code that ran is read. In the simulator the interpreted kernels are also compiled, without a GPU. A
submission shares this process and can falsify these checks; its values and times are checked by the judge.
"""

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

from grader.worker.simulator.accesses import NOTE, observe
from grader.worker.toolchain.compile_only import CannotBeSeen, CompileFailed, Compiler, described

_WITHOUT_A_GPU = 90  # the compute capability to compile for
_MIN_WIDE_SHARE = 1 / 3  # of the loaded bytes: a kernel may have a narrow copy of its loop for the end of a row
_HINTS = {"tt.divisibility": "multiple_of", "tt.contiguity": "max_contiguous", "tt.constancy": "max_constancy"}

# Patterns in PTX.
_LINE_COMMENT = re.compile(r"//[^\n]*")
_BLOCK_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_LOAD = re.compile(r"(?<![\w.])ld(?P<parts>(?:\.[\w:]+)+)")
_VECTOR = re.compile(r"v(\d+)")
_TYPE = re.compile(r"[busf](\d+)")
_ASYNCHRONOUS = re.compile(
    r"(?<![\w.])cp\.async\.c[ag]\.shared[\w.:]*\.global[\w.:]*\s*\[[^]]*\]\s*,\s*\[[^]]*\]\s*,\s*(\w+)"
)
_BULK = re.compile(r"(?<![\w.])cp\.async\.bulk[\w.:]*\.shared[\w.:]*\.global")

# Patterns in TritonGPU IR.
_LOADED = re.compile(  # the second is a load in a pipelined loop
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
    """Count the `ld` instructions from global memory by the bytes that they load per thread: {16: 2, 4: 1}."""
    widths: Counter[int] = Counter()
    for found in _LOAD.finditer(_without_comments(ptx)):
        parts = found["parts"].split(".")[1:]
        sizes = [int(match[1]) for part in parts if (match := _TYPE.fullmatch(part))]
        if "global" in parts and sizes:
            lengths = [int(match[1]) for part in parts if (match := _VECTOR.fullmatch(part))]
            widths[(lengths or [1])[0] * sizes[-1] // 8] += 1
    return widths


def asynchronous_bytes(ptx: str) -> Counter[int]:
    """Count `cp.async`, which copies from global to shared memory without a register, in the same way."""
    sizes = (found[1] for found in _ASYNCHRONOUS.finditer(_without_comments(ptx)))
    return Counter(int(size, 0) for size in sizes if size[0].isdigit())


def has_bulk_copies(ptx: str) -> bool:
    """Return whether the Tensor Memory Accelerator moves tiles (tensor descriptors)."""
    return _BULK.search(_without_comments(ptx)) is not None


def elements_per_thread(ttgir: str) -> int:
    """Return the elements per thread of the largest loaded block, at least 1."""
    warps = _WARPS.search(ttgir)
    threads = 32 * int(warps[1]) if warps else 128
    sizes = [prod(map(int, shape.split("x"))) for shape, _ in _LOADED.findall(ttgir)]
    return max([1, *(size // threads for size in sizes)])


def contiguous_elements(ttgir: str) -> int:
    """Return how many contiguous elements one thread holds in the layout of a load, at most."""
    layouts = {name: [int(n) for n in sizes.split(",")] for name, sizes in _LAYOUT.findall(ttgir)}
    return max([1, *(prod(layouts[name]) for _, name in _LOADED.findall(ttgir) if name in layouts)])


class NarrowLoads(RuntimeError):
    """The loads are narrower than required."""


class NoTritonKernel(RuntimeError):
    """The call launched no Triton kernel."""


@dataclass(frozen=True)
class Launch:
    """A launched kernel: its compiled code, its programs, and its threads per program."""

    name: str
    ptx: str
    ttgir: str
    programs: int
    threads: int
    capability: int = _WITHOUT_A_GPU

    def loaded(self, wide_bytes: int) -> tuple[int, int]:
        """Return the bytes that all threads load by wide loads, and by all loads, if each load runs once."""
        widths = load_widths(self.ptx) + asynchronous_bytes(self.ptx)
        if has_bulk_copies(self.ptx):
            widths[wide_bytes] += 1
        threads = self.programs * self.threads
        wide = sum(width * count for width, count in widths.items() if width >= wide_bytes)
        return threads * wide, threads * sum(width * count for width, count in widths.items())


def share_of_wide(launches: list[Launch], wide_bytes: int) -> float:
    """Return the share of the loaded bytes that loads of at least `wide_bytes` bytes load."""
    both = [launch.loaded(wide_bytes) for launch in launches]
    return sum(wide for wide, _ in both) / max(1, sum(loaded for _, loaded in both))


class WideLoads:
    """Call `entry`, and check its loads once per shape of its first argument."""

    def __init__(self, entry: Callable[..., Any], wide_bytes: int) -> None:
        self.entry, self.wide_bytes = entry, wide_bytes
        self._known: set[Any] = set()
        self._compiler = Compiler()
        if os.environ.get("TRITON_INTERPRET") == "1":
            self._compiler.start()  # while the first cases are interpreted

    def __call__(self, *tensors: Any) -> None:
        """Raise `NarrowLoads`, `NoTritonKernel`, `FalseHint`, `CompileFailed`, and the entry's own exceptions."""
        shape = tensors[0].shape
        if shape in self._known:
            self.entry(*tensors)
            return
        if tensors[0].is_cuda:
            self.entry(*tensors)  # an autotuner chooses its configuration here
            with _launched() as launches:
                self.entry(*tensors)
        else:
            with _interpreted() as seen, checked_hints():
                self.entry(*tensors)
            try:
                launches = [self._widest(name, each) for (name, _), each in seen.items()]
            except CannotBeSeen as error:
                print(f"The grader did not check the width of the loads, because {error}.", flush=True)
                self._known.add(shape)
                return
        self._judge(launches)
        self._known.add(shape)

    def _judge(self, launches: list[Launch]) -> None:
        if not launches:
            raise NoTritonKernel("no Triton kernel was launched")
        if share_of_wide(launches, self.wide_bytes) >= _MIN_WIDE_SHARE:
            return
        worst = max(launches, key=lambda one: one.loaded(self.wide_bytes)[1] - one.loaded(self.wide_bytes)[0])
        widths = load_widths(worst.ptx) + asynchronous_bytes(worst.ptx)
        width, count = max(widths.items(), key=lambda item: (item[0] * item[1], item[0]), default=(0, 0))
        which = "its loads" if count == widths.total() else f"some of its loads ({count} of {widths.total()})"
        raise NarrowLoads(
            f"{worst.name}: {which} are too narrow, {width} B per thread instead of {self.wide_bytes} B; "
            f"{self._reason(worst)}"
        )

    def _reason(self, launch: Launch) -> str:
        """Return what keeps the loads narrow: too few elements, the addresses, or the mask."""
        elements, run = elements_per_thread(launch.ttgir), contiguous_elements(launch.ttgir)
        if run >= min(4, elements) and elements < 4:
            return f"the block is too small (threads: {launch.threads}, elements per thread: {elements})"
        if run < 4:
            return f"each thread has runs of length {run}, because the compiler does not know that 4 are contiguous"
        # A load takes the layout of a store that depends on it, so its own addresses may still be unknown.
        try:
            unmasked = _MASKED.sub(lambda found: found[1] or found[2], launch.ttgir)
            bare = self._compiler.lower(unmasked, launch.capability)
        except CompileFailed:
            return "the addresses or the mask do not allow more"
        if share_of_wide([replace(launch, ptx=bare)], self.wide_bytes) >= _MIN_WIDE_SHARE:
            return "the addresses allow more, but the mask does not"
        return "the layout allows more, but the addresses of the loads do not"

    def _widest(self, name: str, seen: Interpreted) -> Launch:
        """Compile a kernel. If it is autotuned, compile its configurations up to one with wide loads, which a GPU may
        choose, and note the first one without.
        """
        narrow: list[tuple[str, Launch]] = []
        for config, arguments, programs in seen.configurations:
            told = {key: described(value) for key, value in arguments.items()}
            found = self._compiler.compile(seen.path, name, told, _WITHOUT_A_GPU)
            launch = Launch(name, found["ptx"], found["ttgir"], programs, 32 * found["num_warps"])
            if share_of_wide([launch], self.wide_bytes) >= _MIN_WIDE_SHARE:
                if narrow:
                    said = f"With the configuration “{narrow[0][0]}”, the loads of `{name}` are too narrow: "
                    said += (
                        f"{self._reason(narrow[0][1])}. If the autotuner chooses it on a GPU, the check fails there."
                    )
                    observe(NOTE, said, None)
                return launch
            narrow.append((config, launch))
        return narrow[0][1]


def _named(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a launch by name, including defaults."""
    parameters = inspect.signature(function).parameters
    defaults = {name: each.default for name, each in parameters.items() if each.default is not each.empty}
    return defaults | dict(zip(parameters, args, strict=False)) | kwargs


def _programs(grid: Any, named: dict[str, Any]) -> int:
    return math.prod(grid(named) if callable(grid) else grid)


@contextlib.contextmanager
def _launched() -> Iterator[list[Launch]]:
    """Collect the launches on the GPU."""
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
            launches.append(
                Launch(self.__name__, asm["ptx"], asm["ttgir"], _programs(grid, named), threads, capability)
            )
        return kernel

    JITFunction.run = run
    try:
        yield launches
    finally:
        JITFunction.run = before


@dataclass(frozen=True)
class Interpreted:
    """The launches of a kernel with the same constants: its file, and of each configuration the name, the last
    arguments and all programs. Without an autotuner there is one configuration; the first is the one that ran.
    """

    path: Path
    configurations: list[tuple[str, dict[str, Any], int]]


@contextlib.contextmanager
def _interpreted() -> Iterator[dict[tuple[str, str], Interpreted]]:
    """Collect the interpreted kernels by name and constants."""
    from triton.runtime import interpreter
    from triton.runtime.autotuner import Autotuner

    seen: dict[tuple[str, str], Interpreted] = {}
    tuners: list[Any] = []
    executor = interpreter.GridExecutor
    before, tune = executor.__call__, Autotuner.run

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        named, parameters = _named(self.fn, args, kwargs), inspect.signature(self.fn).parameters.values()
        configurations = [("", named, _programs(self.grid, named))]
        tuner = next((each for each in tuners if getattr(each.base_fn, "__name__", "") == self.fn.__name__), None)
        if tuner is not None:
            ran = tuner.best_config
            given = {name: value for name, value in kwargs.items() if name not in ran.all_kwargs()}
            configurations = []
            for config in sorted(tuner.prune_configs(given), key=lambda each: each is not ran):
                changed = named | config.all_kwargs()
                configurations.append((str(config).split(", num_ctas")[0], changed, _programs(self.grid, changed)))
        variables = {each.name for each in parameters if "constexpr" not in str(each.annotation)}
        constants = {name: value for name, value in named.items() if name not in variables}
        key = self.fn.__name__, str((constants, [name for name, _, _ in configurations]))
        if key in seen:
            earlier = [programs for _, _, programs in seen[key].configurations]
            configurations = [(*each[:2], each[2] + more) for each, more in zip(configurations, earlier, strict=True)]
        seen[key] = Interpreted(Path(self.fn.__code__.co_filename), configurations)
        return before(self, *args, **kwargs)

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        tuners.append(self)
        try:
            return tune(self, *args, **kwargs)
        finally:
            tuners.pop()

    executor.__call__, Autotuner.run = call, run
    try:
        yield seen
    finally:
        executor.__call__, Autotuner.run = before, tune


class FalseHint(RuntimeError):
    """A hint is false for the values that it is given."""


@contextlib.contextmanager
def checked_hints() -> Iterator[None]:
    """Let interpreted kernels raise `FalseHint` if one of their hints is false."""
    from triton.runtime.interpreter import TensorHandle

    before = TensorHandle.set_attr

    def set_attr(self: Any, key: str, values: Any) -> None:
        if key in _HINTS:
            _check_hint(_HINTS[key], self, [int(value) for value in values])
        before(self, key, values)

    TensorHandle.set_attr = set_attr
    try:
        yield
    finally:
        TensorHandle.set_attr = before


def _check_hint(name: str, handle: Any, values: list[int]) -> None:
    # Contiguous pointers are one element apart, and their multiples count in bytes.
    is_pointer = hasattr(handle.dtype, "element_ty")
    step = max(1, handle.dtype.element_ty.primitive_bitwidth // 8) if is_pointer else 1
    data = np.atleast_1d(handle.data)
    for axis, value in enumerate(values):
        rows = np.moveaxis(data, axis, -1).reshape(-1, data.shape[axis]).astype(np.int64)
        if name == "multiple_of":
            first = rows.reshape(len(rows), -1, _run_length(rows, step))[:, :, 0]
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


def _run_length(rows: Any, step: int) -> int:
    """Return the longest power of two for which all groups of that length are contiguous."""
    longest = 1
    while rows.shape[1] % (2 * longest) == 0:
        if (np.diff(rows.reshape(len(rows), -1, 2 * longest)) != step).any():
            break
        longest *= 2
    return longest
