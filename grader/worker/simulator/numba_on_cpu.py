"""Make Numba's CUDA simulator closer to a GPU, so that it shows more bugs, and faster.

Unwritten memory holds NaN, and the device has a multiprocessor. As on a GPU, a kernel with one signature takes the
bytes of its arguments, and with several signatures one must match. `numba_blocks.py` runs the kernels, and
`numba_library.py` has functions that they call.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import math
import operator
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from math import prod
from types import ModuleType, SimpleNamespace
from typing import Any

from grader.worker.simulator import numba_compiled, tally
from grader.worker.simulator.accesses import rights_of

MULTIPROCESSORS = 1
_OPTIONS = {
    "cache", "debug", "device", "fastmath", "forceinline", "inline", "launch_bounds", "lineinfo", "link", "lto",
    "max_registers", "opt", "shared_memory_carveout",
}  # fmt: skip


def offer() -> None:
    """Make `numba.cuda` the simulator when it is imported. This affects the whole process, so it is for workers."""
    os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
    if "numba.cuda" not in sys.modules and not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def array(tensor: Any) -> Any:
    """Return a device array over a tensor's memory. An input's memory is read-only: a write to it raises."""
    import numpy as np
    from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray

    host = tensor.numpy()
    if "w" not in rights_of(tensor.data_ptr()):
        host = np.lib.stride_tricks.as_strided(host, writeable=False)
    return FakeCUDAArray(host)


class _Finder:
    """Patch `numba.cuda` at the end of its import."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> Any:
        if name != "numba.cuda":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            execute = loader.exec_module

            def execute_and_patch(module: ModuleType) -> None:
                execute(module)
                _patch(module)

            loader.exec_module = execute_and_patch
        return spec


def _patch(cuda: Any) -> None:
    import numpy as np
    from numba.cuda import libdevice, vectorizers
    from numba.cuda.simulator import kernel
    from numba.cuda.simulator.cudadrv import devices

    from grader.worker.simulator import numba_blocks, numba_library

    made = cuda.device_array

    @functools.wraps(made)
    def poisoned(*args: Any, **kwargs: Any) -> Any:
        new = made(*args, **kwargs)
        if np.issubdtype(new.dtype, np.floating):
            new[...] = np.nan
        return new

    devices.FakeCUDADevice.MULTIPROCESSOR_COUNT = MULTIPROCESSORS
    devices.FakeCUDADevice.name = b"SIMULATOR"
    numba_blocks.install()
    numba_library.install(libdevice, vectorizers)
    launch = kernel.FakeCUDAKernel.__call__
    kernel.FakeCUDAKernel.__call__ = lambda self, *args: _launched(launch, self, *args)
    cuda.get_current_device = lambda: devices.gpus[0].device
    cuda.device_array = poisoned
    cuda.device_array_like = lambda like, stream=0: poisoned(shape=like.shape, dtype=like.dtype)
    cuda.external_stream = lambda pointer: cuda.stream()
    cuda.as_cuda_array = lambda given, sync=True: array(given) if hasattr(given, "data_ptr") else given
    cuda.jit = functools.partial(_jit, cuda.jit)


def _launched(launch: Callable[..., Any], kernel: Any, *args: Any) -> Any:
    """Launch a kernel; one without a signature is also compiled, for the types of these arguments."""
    asked = getattr(kernel, "asked", None)
    if asked is not None and not asked.get("device") and kernel.grid_dim is not None:
        types = tuple(map(_type_of, args))
        before = vars(kernel).setdefault("types_before", set())
        numba_compiled.start(kernel.fn, types, asked, again=not before & {types})
        before.add(types)
    result = launch(kernel, *args)
    if not kernel._device and kernel.grid_dim is not None:
        name = getattr(kernel.fn, "__name__", "")
        tally.launched(name, tuple(kernel.grid_dim), prod(kernel.block_dim), tally.line_of_submission())
    return result


def _jit(original: Callable[..., Any], function_or_signature: Any = None, **options: Any) -> Any:
    """Act as `cuda.jit`: take the real one's options, and compile for the given signatures."""
    if unknown := set(options) - _OPTIONS:
        raise TypeError(f"_Kernel.__init__() got an unexpected keyword argument {min(unknown)!r}")  # Numba's words
    asked = options
    options = {name: value for name, value in options.items() if name in ("device", "fastmath", "debug")}
    if function_or_signature is None:
        return functools.partial(_jit, original, **asked)
    if callable(function_or_signature) and hasattr(function_or_signature, "__code__"):
        made = original(function_or_signature, **options)
        made.asked = asked
        return made
    many = isinstance(function_or_signature, list)
    signatures = function_or_signature if many else [function_or_signature]

    def decorate(function: Any) -> Any:
        made = original(function, **options)
        if options.get("device"):
            return made
        for signature in signatures:
            numba_compiled.start(function, _arguments(signature), asked, again=True)
        return (_Checked if many else _Compiled)(made, [_arguments(each) for each in signatures])

    return decorate


def _arguments(signature: Any) -> tuple[Any, ...]:
    from numba.core.sigutils import normalize_signature

    return tuple(normalize_signature(signature)[0])


class _Compiled:
    """A kernel that was compiled for one signature: it takes the bytes of its arguments, whatever their type."""

    def __init__(self, kernel: Any, signatures: list[tuple[Any, ...]]) -> None:
        self._kernel, self._signatures = kernel, signatures

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)

    def __getitem__(self, configuration: Any) -> _Compiled:
        return type(self)(self._kernel[configuration], self._signatures)

    def __call__(self, *args: Any) -> None:
        (signature,) = self._signatures
        if len(args) != len(signature):
            raise TypeError(
                f"This kernel was compiled for another number of arguments: {len(signature)}, and gets {len(args)}."
            )
        converted = [_reinterpreted(*each) for each in zip(args, signature, strict=True)]
        with _nan_outside_domains() if any(map(operator.is_not, converted, args)) else contextlib.nullcontext():
            self._kernel(*converted)


class _Checked(_Compiled):
    """A kernel that was compiled for several signatures: each call needs one that matches its arguments."""

    def __call__(self, *args: Any) -> None:
        if not any(len(args) == len(signature) and all(map(_fits, args, signature)) for signature in self._signatures):
            types = ", ".join(str(_type_of(argument)) for argument in args)
            raise TypeError(f"No matching definition for argument type{'(s)'} {types}")  # Numba's own message
        self._kernel(*args)


@contextlib.contextmanager
def _nan_outside_domains() -> Iterator[None]:
    """Let functions of `math` return NaN outside their domain, as on a GPU: reinterpreted bytes may hold any value."""

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


def _reinterpreted(argument: Any, wanted: Any) -> Any:
    """Return an argument's bytes as an array of the wanted type, unless it would need more bytes than there are."""
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
    needed, available = (
        item + sum((length - 1) * step for length, step in zip(host.shape, steps, strict=True))
        for item, steps in ((dtype.itemsize, strides), (host.itemsize, host.strides))
    )
    if host.size and needed > available:
        raise IndexError(
            f"This kernel was compiled for {wanted.dtype}, and gets {found.dtype}: it reads or writes past the end of "
            f"the array, which has {available:,} B of the {needed:,} B that it needs. A GPU does not report this."
        )
    interface = host.__array_interface__ | {"typestr": dtype.str, "descr": dtype.descr, "strides": strides}
    return FakeCUDAArray(np.asarray(SimpleNamespace(__array_interface__=interface, owner=host)))


def _type_of(argument: Any) -> Any:
    import numba

    return numba.typeof(argument._ary if hasattr(argument, "_ary") else argument)


def _fits(argument: Any, wanted: Any) -> bool:
    """Arrays must have the type and contiguity of the signature; numbers are converted."""
    found = _type_of(argument)
    if not hasattr(wanted, "ndim") or not hasattr(found, "ndim"):
        return hasattr(wanted, "ndim") == hasattr(found, "ndim")
    same = (found.dtype, found.ndim) == (wanted.dtype, wanted.ndim)
    return same and wanted.layout in ("A", found.layout)
