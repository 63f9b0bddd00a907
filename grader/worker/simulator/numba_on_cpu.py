"""Numba's CUDA simulator as the worker needs it: nearer to a GPU where that shows a bug, and fast enough.

What is added: of several signatures one must suit the arguments, a single one takes their bytes, as Numba does; memory
that nobody has written holds NaN; a device with a multiprocessor; and a kernel without a barrier runs in one thread,
which is many times as fast.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import linecache
import math
import operator
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

MULTIPROCESSORS = 1
_OPTIONS = {
    "cache", "debug", "device", "fastmath", "forceinline", "inline", "launch_bounds", "lineinfo", "link", "lto",
    "max_registers", "opt", "shared_memory_carveout",
}  # fmt: skip
_MEETINGS = ("syncthreads", "cooperative", "this_grid", "syncwarp")  # threads wait there for each other


def offer() -> None:
    """From now on `numba.cuda`, once it is imported, is the simulator. Only for workers: it is for a whole process."""
    os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
    if "numba.cuda" not in sys.modules and not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def array(tensor: Any) -> Any:
    """A device array over a tensor's memory. An input's memory can only be read: writing to it is refused."""
    import numpy as np
    from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray

    host = tensor.numpy()
    # A view over other memory, or over memory that may be written: the tensor does not say which.
    if not _writable(tensor.data_ptr()):
        host = np.lib.stride_tricks.as_strided(host, writeable=False)
    return FakeCUDAArray(host)


def _writable(address: int) -> bool:
    with open("/proc/self/maps", encoding="ascii") as maps:
        for line in maps:
            span, rights, *_ = line.split()
            low, high = (int(part, 16) for part in span.split("-"))
            if low <= address < high:
                return "w" in rights
    return True


class _Finder:
    """Adds to `numba.cuda` at the end of its import; stands in nobody's way otherwise."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> Any:
        if name != "numba.cuda":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            execute = loader.exec_module

            def then_add(module: ModuleType) -> None:
                execute(module)
                _add_to(module)

            loader.exec_module = then_add
        return spec


def _add_to(cuda: Any) -> None:
    import numpy as np
    from numba.cuda.simulator import kernel
    from numba.cuda.simulator.cudadrv import devices

    made = cuda.device_array

    @functools.wraps(made)
    def poisoned(*args: Any, **kwargs: Any) -> Any:
        new = made(*args, **kwargs)
        if np.issubdtype(new.dtype, np.floating):
            new[...] = np.nan
        return new

    devices.FakeCUDADevice.MULTIPROCESSOR_COUNT = MULTIPROCESSORS
    devices.FakeCUDADevice.name = b"SIMULATOR"
    run = kernel.BlockManager.run
    kernel.BlockManager.run = lambda self, *args: (run if _meet(self._f) else _one_by_one)(self, *args)
    cuda.get_current_device = lambda: devices.gpus[0].device
    cuda.device_array = poisoned
    cuda.device_array_like = lambda like, stream=0: poisoned(shape=like.shape, dtype=like.dtype)
    cuda.external_stream = lambda pointer: cuda.stream()
    cuda.as_cuda_array = lambda given, sync=True: array(given) if hasattr(given, "data_ptr") else given
    cuda.jit = functools.partial(_jit, cuda.jit)


def _meet(function: Any) -> bool:
    text = "".join(linecache.getlines(function.__code__.co_filename)) or "syncthreads"
    return any(word in text for word in _MEETINGS)


def _one_by_one(manager: Any, block: tuple[int, ...], *args: Any) -> None:
    """The threads of a block, one after the other, in this thread: nobody waits for anybody."""
    import numpy as np
    from numba.cuda.simulator.kernelapi import Dim3

    here: Any = threading.current_thread()
    here.blockIdx = Dim3(*block)
    for point in np.ndindex(*manager._block_dim):
        here.threadIdx = Dim3(*point)
        here.thread_id = point[0] + manager._block_dim[0] * (point[1] + manager._block_dim[1] * point[2])
        manager._f(*args)


def _jit(original: Callable[..., Any], function_or_signature: Any = None, **options: Any) -> Any:
    """`cuda.jit`, which takes what the real one takes, and compiles for the signatures that it is given."""
    if unknown := set(options) - _OPTIONS:
        raise TypeError(f"_Kernel.__init__() got an unexpected keyword argument {min(unknown)!r}")  # Numba's words
    options = {name: value for name, value in options.items() if name in ("device", "fastmath", "debug")}
    if function_or_signature is None:
        return functools.partial(_jit, original, **options)
    if callable(function_or_signature) and hasattr(function_or_signature, "__code__"):
        return original(function_or_signature, **options)
    many = isinstance(function_or_signature, list)
    signatures = function_or_signature if many else [function_or_signature]

    def decorate(function: Any) -> Any:
        made = original(function, **options)
        if options.get("device"):
            return made
        return (_Checked if many else _Compiled)(made, [_arguments(each) for each in signatures])

    return decorate


def _arguments(signature: Any) -> tuple[Any, ...]:
    from numba.core.sigutils import normalize_signature

    return tuple(normalize_signature(signature)[0])


class _Compiled:
    """A kernel that was compiled for one signature: it takes the bytes of its arguments, and nobody asks their type."""

    def __init__(self, kernel: Any, signatures: list[tuple[Any, ...]]) -> None:
        self._kernel, self._signatures = kernel, signatures

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)

    def __getitem__(self, configuration: Any) -> _Compiled:
        return type(self)(self._kernel[configuration], self._signatures)

    def __call__(self, *args: Any) -> None:
        (signature,) = self._signatures
        if len(args) != len(signature):
            raise TypeError(f"This kernel was compiled for {len(signature)} arguments, and gets {len(args)}.")
        taken = [_taken(*each) for each in zip(args, signature, strict=True)]
        with _domains() if any(map(operator.is_not, taken, args)) else contextlib.nullcontext():
            self._kernel(*taken)


class _Checked(_Compiled):
    """A kernel that was compiled for several signatures: each call looks for the one of its arguments."""

    def __call__(self, *args: Any) -> None:
        if not any(_fit(args, signature) for signature in self._signatures):
            said = ", ".join(str(_type_of(argument)) for argument in args)
            raise TypeError(f"No matching definition for argument type(s) {said}")
        self._kernel(*args)


@contextlib.contextmanager
def _domains() -> Iterator[None]:
    """Meanwhile functions of `math` give NaN outside of their domain, as a GPU's do: other bytes may be anything."""

    def lenient(function: Callable[..., float]) -> Callable[..., float]:
        def compute(*args: Any) -> float:
            try:
                return function(*args)
            except (ValueError, OverflowError):
                return math.nan

        return compute

    known = {name: getattr(math, name) for name in ("cos", "exp", "log", "pow", "sin", "sqrt", "tan")}
    try:
        vars(math).update({name: lenient(function) for name, function in known.items()})
        yield
    finally:
        vars(math).update(known)


def _taken(argument: Any, wanted: Any) -> Any:
    """What a kernel for this type makes of an argument's bytes. It is refused what lies behind them."""
    import numpy as np
    from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray
    from numba.np.numpy_support import as_dtype

    if _fits(argument, wanted):
        return argument
    found = _type_of(argument)
    if getattr(found, "ndim", None) != getattr(wanted, "ndim", None):
        raise TypeError(f"This kernel was compiled for {wanted}, and gets {found}.")
    host, dtype = getattr(argument, "_ary", argument), as_dtype(wanted.dtype)
    like = np.empty(host.shape, dtype, order="F" if wanted.layout == "F" else "C")
    strides = host.strides if wanted.layout == "A" else like.strides
    needed, there = (
        item + sum((length - 1) * step for length, step in zip(host.shape, steps, strict=True))
        for item, steps in ((dtype.itemsize, strides), (host.itemsize, host.strides))
    )
    if host.size and needed > there:
        raise IndexError(
            f"This kernel was compiled for {wanted.dtype}, and gets {found.dtype}: it reads or writes past "
            f"the end of the array, {needed:,} bytes where there are {there:,}. A GPU does not say so."
        )
    seen = host.__array_interface__ | {"typestr": dtype.str, "descr": dtype.descr, "strides": strides}
    return FakeCUDAArray(np.asarray(SimpleNamespace(__array_interface__=seen, owner=host)))


def _type_of(argument: Any) -> Any:
    import numba

    return numba.typeof(argument._ary if hasattr(argument, "_ary") else argument)


def _fit(arguments: tuple[Any, ...], signature: tuple[Any, ...]) -> bool:
    return len(arguments) == len(signature) and all(map(_fits, arguments, signature))


def _fits(argument: Any, wanted: Any) -> bool:
    """Arrays must be of the type and as contiguous as the signature says; numbers are converted."""
    found = _type_of(argument)
    if not hasattr(wanted, "ndim") or not hasattr(found, "ndim"):
        return hasattr(wanted, "ndim") == hasattr(found, "ndim")
    same = (found.dtype, found.ndim) == (wanted.dtype, wanted.ndim)
    return same and wanted.layout in ("A", found.layout)
