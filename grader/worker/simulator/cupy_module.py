"""A stand-in for CuPy on a machine without a GPU: raw kernels run on the CPU, arrays are NumPy's.

`offer()` has `import cupy` find it. Kernels go through `cuda_on_cpu`, so what that reports is reported here as well.
What the CUDA driver does to arguments is done here: it copies as many bytes as the parameter has, whatever they mean.
Not simulated: time, streams that overlap, textures, CuPy's own kernels beyond what NumPy has, and `cupyx`.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import time
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from grader.worker.simulator import cuda_source, cupy_arrays, cupy_kernels

# What `import cupy` gives without a GPU: NumPy's functions on this package's arrays, kernels, a device.

_MULTIPROCESSORS = 1  # as for Numba: a small case has more elements than a grid of some blocks for each has threads
_CAPABILITY = "90"  # of the GPU whose figures the course records
_ABSENT = ("save", "load", "savetxt", "memmap", "vectorize", "fromfile", "testing", "ctypeslib", "matrix")


class Stream:
    """Everything is done when a call returns: a stream only has to be there."""

    def __init__(self, null: bool = False, non_blocking: bool = False, ptr: int = 0, **keywords: Any) -> None:
        self.ptr = ptr

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exception: object) -> None:
        """Nothing changes back."""

    def use(self) -> Stream:
        """Makes it the current one."""
        return self

    def synchronize(self) -> None:
        """Raises what a kernel did wrong."""
        cuda_source.synchronize()

    def record(self, event: Any = None) -> Any:
        """Puts an event behind what the stream has to do."""
        made = event or Event()
        made.record()
        return made

    def wait_event(self, event: Any) -> None:
        """All is done already."""


class Event:
    """A moment of the host's clock."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        self.at_s = 0.0

    def record(self, stream: Any = None) -> None:
        """Takes the time."""
        self.at_s = time.perf_counter()

    def synchronize(self) -> None:
        """Raises what a kernel did wrong."""
        cuda_source.synchronize()


class Device:
    """The CPU in a GPU's place: few multiprocessors."""

    def __init__(self, device: int | None = None) -> None:
        self.id = device or 0

    attributes = {  # noqa: RUF012
        "MultiProcessorCount": _MULTIPROCESSORS,
        "MaxThreadsPerBlock": 1024,
        "WarpSize": 32,
        "MaxRegistersPerBlock": 65_536,
        "MaxSharedMemoryPerBlock": 48 << 10,
        "ComputeCapabilityMajor": int(_CAPABILITY[:-1]),
        "ComputeCapabilityMinor": int(_CAPABILITY[-1]),
    }
    compute_capability = _CAPABILITY

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *exception: object) -> None:
        """Nothing changes back."""

    def use(self) -> None:
        """There is one."""

    def synchronize(self) -> None:
        """Raises what a kernel did wrong."""
        cuda_source.synchronize()


def _properties(device: int = 0) -> dict[str, Any]:
    major, minor = int(_CAPABILITY[:-1]), int(_CAPABILITY[-1])
    return {
        "name": b"the CPU", "multiProcessorCount": _MULTIPROCESSORS, "warpSize": 32, "maxThreadsPerBlock": 1024,
        "major": major, "minor": minor, "sharedMemPerBlock": 48 << 10, "regsPerBlock": 65_536,
    }  # fmt: skip


def _cuda() -> dict[str, Any]:
    null = Stream(null=True)
    Stream.null = null  # type: ignore[attr-defined]
    runtime = {
        "getDeviceProperties": _properties,
        "getDeviceCount": lambda: 1,
        "getDevice": lambda: 0,
        "deviceSynchronize": cuda_source.synchronize,
        "CUDARuntimeError": cupy_arrays.CUDADriverError,
    }
    return {
        "Device": Device,
        "Stream": Stream,
        "ExternalStream": lambda ptr, device_id=-1: Stream(ptr=ptr),
        "Event": Event,
        "get_elapsed_time": lambda start, end: 1e3 * (end.at_s - start.at_s),
        "get_current_stream": lambda device_id=-1: null,
        "is_available": lambda: True,
        "runtime": _filled("cupy.cuda.runtime", runtime),
        "driver": _filled("cupy.cuda.driver", {"CUDADriverError": cupy_arrays.CUDADriverError}),
        "compiler": _filled("cupy.cuda.compiler", {"CompileException": cupy_arrays.CompileException}),
        "function": _filled("cupy.cuda.function", {"Function": cupy_kernels.Function}),
        "nvtx": _filled("cupy.cuda.nvtx", {"RangePush": lambda *a: None, "RangePop": lambda: None}),
    }


def _filled(name: str, content: dict[str, Any]) -> ModuleType:
    made = ModuleType(name, "A part of the stand-in for CuPy.")
    made.__dict__.update(content)
    return made


def _of_numpy(name: str, whole: Any) -> ModuleType:
    made = _filled(name, {})

    def find(attribute: str) -> Any:
        if attribute.startswith("__") or attribute in _ABSENT or not hasattr(whole, attribute):
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}")
        found = getattr(whole, attribute)
        return cupy_arrays.wrapped(found) if callable(found) and not isinstance(found, type) else found

    made.__getattr__ = find  # type: ignore[method-assign]
    return made


def _top() -> ModuleType:
    made = _of_numpy("cupy", np)
    own = {name: getattr(cupy_arrays, name) for name in ("ndarray", "empty", "empty_like", "asnumpy", "asarray")}
    made.__dict__.update(own)
    made.__dict__.update(
        __version__="14.2.0",
        array=lambda value, dtype=None, copy=True: np.array(cupy_arrays.asarray(value, dtype)).view(
            cupy_arrays.ndarray
        ),
        ascontiguousarray=lambda value, dtype=None: cupy_arrays.on_device(
            np.ascontiguousarray(cupy_arrays.asarray(value, dtype))
        ),
        from_dlpack=cupy_arrays.asarray,
        RawModule=cupy_kernels.RawModule,
        RawKernel=cupy_kernels.RawKernel,
        get_array_module=lambda *values: made,
        __path__=[],
    )
    return made


_BUILT: dict[str, ModuleType] = {}


def module(name: str) -> ModuleType:
    """`cupy`, or one of its parts; made once."""
    if not _BUILT:
        top = _BUILT["cupy"] = _top()
        whole = _BUILT["cupy.cuda"] = _filled("cupy.cuda", _cuda() | {"__path__": []})
        for part in ("runtime", "driver", "compiler", "function", "nvtx"):
            _BUILT[f"cupy.cuda.{part}"] = getattr(whole, part)
        for part in ("fft", "linalg", "random"):
            _BUILT[f"cupy.{part}"] = _of_numpy(f"cupy.{part}", getattr(np, part))
        top.__dict__.update(cuda=whole, **{part: _BUILT[f"cupy.{part}"] for part in ("fft", "linalg", "random")})
    return _BUILT[name]


# A stand-in for CuPy on a machine without a GPU: raw kernels run on the CPU, arrays are NumPy's.
#
# `offer()` has `import cupy` find it. Kernels go through `cuda_on_cpu`, so what that reports is reported here as well.
# What the CUDA driver does to arguments is done here: it copies as many bytes as the parameter has, whatever they mean.
# Not simulated: time, streams that overlap, textures, CuPy's own kernels beyond what NumPy has, and `cupyx`.

PARTS = (
    "cupy.cuda", "cupy.cuda.runtime", "cupy.cuda.driver", "cupy.cuda.compiler", "cupy.cuda.function", "cupy.cuda.nvtx",
    "cupy.fft", "cupy.linalg", "cupy.random",
)  # fmt: skip


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `cupy` and its parts, before a CuPy that is installed and has no GPU."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        known = fullname == "cupy" or fullname in PARTS
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True) if known else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:

        return module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is left to do."""


def offer() -> None:
    """Has `import cupy` find the stand-in, in this process. A second call does nothing."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
