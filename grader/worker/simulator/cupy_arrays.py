"""CuPy's arrays on NumPy's: a scalar result is an array without dimensions, and new memory holds garbage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from grader.worker.simulator import cupy_streams

_GARBAGE = 0xFFF9  # in every 16 bits: NaN in all floating-point types, and not the NaN that the judge puts into outputs


class CompileException(Exception):
    """CuPy's error for a source that NVRTC refused; the text is NVRTC's log."""

    def __init__(self, log: str, source: str, name: str, options: Sequence[str], backend: str = "nvrtc") -> None:
        super().__init__(log)
        self.source, self.name, self.options, self.backend = source, name, tuple(options), backend


class CUDADriverError(RuntimeError):
    """CuPy's error for a call that the driver refused."""


def _waiting(name: str) -> Any:
    """A method of NumPy's that brings elements to the host, so that it waits for the current stream."""

    def call(self: Any, *arguments: Any) -> Any:
        cupy_streams.current().synchronize()
        return getattr(np.ndarray, name)(self, *arguments)

    return call


class ndarray(np.ndarray):
    """An array that a kernel takes."""

    __array_priority__ = 100

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return on_device(array)

    def __getitem__(self, key: Any) -> Any:
        return on_device(super().__getitem__(key))

    @property
    def data(self) -> Any:
        return SimpleNamespace(ptr=self.ctypes.data, device_id=0)

    @property
    def device(self) -> Any:
        return SimpleNamespace(id=0)

    def get(self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True) -> Any:
        """Return a copy on the host."""
        return asnumpy(self, stream, order, out)

    item, tolist, __float__, __int__, __bool__, __format__, __repr__, __str__ = map(
        _waiting, ("item", "tolist", "__float__", "__int__", "__bool__", "__format__", "__repr__", "__str__")
    )

    def dot(self, other: Any, out: Any = None) -> Any:
        """Return the product; CuPy leaves even a single number on the GPU."""
        return on_device(np.dot(np.asarray(self), np.asarray(other)))


def on_device(value: Any) -> Any:
    """Convert NumPy's arrays and scalars to arrays of this module; return anything else unchanged."""
    if isinstance(value, ndarray):
        return value
    if isinstance(value, np.ndarray | np.generic):
        return np.asarray(value).view(ndarray)
    if isinstance(value, tuple) and any(isinstance(each, np.ndarray) for each in value):
        return tuple(map(on_device, value))
    return value


def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of NumPy's that returns arrays of this module."""

    def call(*arguments: Any, **keywords: Any) -> Any:
        return on_device(function(*arguments, **keywords))

    call.__name__ = getattr(function, "__name__", "call")
    if isinstance(function, np.ufunc):
        for name in ("outer", "reduce", "accumulate", "reduceat", "at"):
            setattr(call, name, wrapped(getattr(function, name)))
    return call


def asarray(value: Any, dtype: Any = None) -> Any:
    """Return an array over the judge's tensors, which represent memory of the GPU; copy anything from the host."""
    if isinstance(value, ndarray) and dtype in (None, value.dtype):
        return value
    if hasattr(value, "detach") and hasattr(value, "numpy"):
        shared = value.detach().numpy().view(ndarray)
        return shared if dtype in (None, shared.dtype) else shared.astype(dtype)
    return np.array(value, dtype=dtype, subok=False).view(ndarray)


def asnumpy(value: Any, stream: Any = None, order: Any = "C", out: Any = None, *, blocking: bool = True) -> Any:
    """Return a copy on the host, after the work of `stream` or else of the current one."""
    (stream or cupy_streams.current()).synchronize()
    if out is None:
        return np.array(value, subok=False, order=order)
    out[...] = value
    return out


def empty(shape: Any, dtype: Any = float, order: str = "C") -> Any:
    """Return unwritten memory; floating-point numbers in it are NaN."""
    made = np.empty(shape, dtype)
    halves = -(-made.nbytes // 2)
    flat = np.full(halves, _GARBAGE, np.uint16).view(np.uint8)[: made.nbytes]
    return flat.view(made.dtype).reshape(made.shape).view(ndarray)


def empty_like(value: Any, dtype: Any = None) -> Any:
    """Return unwritten memory of the same shape."""
    return empty(value.shape, dtype or value.dtype)
