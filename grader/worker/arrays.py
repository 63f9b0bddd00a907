"""Arguments in the language of the submission: CuPy's arrays, Numba's, or the tensors themselves."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

# Torch tensors as Numba's device arrays: the same memory, nothing copied. Where there is no GPU, Numba's simulator.

_MOST_NUMBA = 1024  # tensors of a job, launches times arguments
_numba_made: dict[tuple[Any, ...], Any] = {}  # what Numba takes to look at a tensor is no part of a submission's time


def numba_arrays(*tensors: Any) -> list[Any]:
    """A device array for each tensor; tensors of a GPU are used on the stream that Numba has by default, torch's too.

    In the simulator an array over memory that can only be read refuses to be written, as a GPU would.
    """
    if len(_numba_made) > _MOST_NUMBA:
        _numba_made.clear()
    return [_numba_array(tensor) for tensor in tensors]


def _numba_array(tensor: Any) -> Any:
    key = (tensor.data_ptr(), tuple(tensor.shape), tensor.dtype)
    if key not in _numba_made:
        _numba_made[key] = _simulated(tensor) if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1" else _on_gpu(tensor)
    return _numba_made[key]


def _on_gpu(tensor: Any) -> Any:
    from numba import cuda

    return cuda.as_cuda_array(tensor, sync=False)


def _simulated(tensor: Any) -> Any:
    from grader.worker.simulator.numba_on_cpu import array

    return array(tensor)


# The judge's tensors as CuPy's arrays, uncopied; the work goes onto torch's current stream.

_MOST_CUPY = 1024  # tensors of a job, launches times arguments
_cupy_made: dict[tuple[Any, ...], Any] = {}  # what CuPy takes to look at a tensor is no part of a submission's time


def cupy_arrays(*tensors: Any) -> list[Any]:
    """Arrays over the same memory, of the GPU or, in the simulator, of the host."""
    if len(_cupy_made) > _MOST_CUPY:
        _cupy_made.clear()
    return [_cupy_array(tensor) for tensor in tensors]


def call_with_arrays(entry: Callable[..., Any], *tensors: Any) -> None:
    """Calls `entry` with arrays over the tensors, CuPy's current stream being torch's."""
    with _on_torchs_stream(tensors[0]):
        entry(*cupy_arrays(*tensors))


def _cupy_array(tensor: Any) -> Any:
    key = (tensor.data_ptr(), tuple(tensor.shape), tensor.dtype)
    if key not in _cupy_made:
        import cupy

        _cupy_made[key] = cupy.asarray(tensor)
    return _cupy_made[key]


def _on_torchs_stream(tensor: Any) -> contextlib.AbstractContextManager[Any]:
    import torch

    pointer = torch.cuda.current_stream().cuda_stream if tensor.is_cuda else 0
    if not pointer:  # the stream that is CuPy's own, too
        return contextlib.nullcontext()
    import cupy

    stream: contextlib.AbstractContextManager[Any] = cupy.cuda.ExternalStream(pointer)
    return stream


# Arguments in the language of the submission: CuPy's arrays, Numba's, or the tensors themselves.

_of: dict[int, str] = {}  # the language by the entry's id; an entry lives as long as its process


def call(entry: Callable[..., Any], *tensors: Any) -> None:
    """Calls `entry` with what it expects, uncopied."""
    if id(entry) not in _of:
        _of[id(entry)] = language(entry)
    if _of[id(entry)] == "cupy":
        call_with_arrays(entry, *tensors)
    elif _of[id(entry)] == "numba":
        entry(*numba_arrays(*tensors))
    else:
        entry(*tensors)


def language(entry: Callable[..., Any]) -> str:
    """By what the entry's module has imported: "cupy" before "numba", and "torch" for what takes tensors."""
    found = set()
    for value in getattr(entry, "__globals__", {}).values():
        name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None) or ""
        found.add(str(name).partition(".")[0].removesuffix("_cuda"))
    return next((library for library in ("cupy", "numba") if library in found), "torch")
