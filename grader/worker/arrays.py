"""A submission's arguments in its own language: CuPy's arrays, Numba's, or the judge's tensors themselves.

Arrays share the memory of the tensors. Each is made once, because making one would count towards a submission's time.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

_MAX_ARRAYS = 1024  # kept per library: the tensors of a job, launches times arguments
_made: dict[str, dict[tuple[Any, ...], Any]] = {"numba": {}, "cupy": {}}
_languages: dict[int, str] = {}  # by the entry's id; an entry lives as long as its process


def numba_arrays(*tensors: Any) -> list[Any]:
    """Return a Numba device array for each tensor, on the stream that Numba and torch use by default.

    In the simulator an array over read-only memory refuses to be written, as on a GPU.
    """
    return _arrays("numba", _numba_array, tensors)


def cupy_arrays(*tensors: Any) -> list[Any]:
    """Return a CuPy array for each tensor, in the GPU's memory or, in the simulator, in the host's."""
    return _arrays("cupy", _cupy_array, tensors)


def call_with_arrays(entry: Callable[..., Any], *tensors: Any) -> None:
    """Call `entry` with CuPy arrays, on torch's current stream."""
    with _torch_stream(tensors[0]):
        entry(*cupy_arrays(*tensors))


def call(entry: Callable[..., Any], *tensors: Any) -> None:
    """Call `entry` with the kind of array that it expects."""
    if id(entry) not in _languages:
        _languages[id(entry)] = language(entry)
    if _languages[id(entry)] == "cupy":
        call_with_arrays(entry, *tensors)
    elif _languages[id(entry)] == "numba":
        entry(*numba_arrays(*tensors))
    else:
        entry(*tensors)


def language(entry: Callable[..., Any]) -> str:
    """Return the library that the entry's module imports: "cupy" before "numba", and "torch" without either."""
    found = set()
    for value in getattr(_function_of(entry), "__globals__", {}).values():
        name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None) or ""
        found.add(str(name).partition(".")[0].removesuffix("_cuda"))
    return next((library for library in ("cupy", "numba") if library in found), "torch")


def _function_of(entry: Any) -> Any:
    """The function that the submission wrote: in a partial, under a decorator, or as an object's `__call__`."""
    while isinstance(entry, functools.partial):
        entry = entry.func
    function = entry if hasattr(entry, "__globals__") or hasattr(entry, "__wrapped__") else type(entry).__call__
    with contextlib.suppress(ValueError):  # it wraps itself
        return inspect.unwrap(function)
    return function


def _arrays(library: str, make: Callable[[Any], Any], tensors: tuple[Any, ...]) -> list[Any]:
    made = _made[library]
    if len(made) > _MAX_ARRAYS:
        made.clear()
    keys = [(tensor.data_ptr(), tuple(tensor.shape), tensor.dtype) for tensor in tensors]
    for key, tensor in zip(keys, tensors, strict=True):
        if key not in made:
            made[key] = make(tensor)
    return [made[key] for key in keys]


def _numba_array(tensor: Any) -> Any:
    if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1":
        from grader.worker.simulator.numba_on_cpu import array

        return array(tensor)
    from numba import cuda

    return cuda.as_cuda_array(tensor, sync=False)


def _cupy_array(tensor: Any) -> Any:
    import cupy

    return cupy.asarray(tensor)


def _torch_stream(tensor: Any) -> contextlib.AbstractContextManager[Any]:
    import torch

    pointer = torch.cuda.current_stream().cuda_stream if tensor.is_cuda else 0
    if not pointer:  # CuPy uses the default stream too
        return contextlib.nullcontext()
    import cupy

    stream: contextlib.AbstractContextManager[Any] = cupy.cuda.ExternalStream(pointer)
    return stream
