"""What `import cupy` gives without a GPU: NumPy's functions on this package's arrays, kernels, a device."""

from __future__ import annotations

import time
from types import ModuleType
from typing import Any

import numpy as np

from grader.worker.cuda_on_cpu import kernel_failures
from grader.worker.cupy_on_cpu import arrays, errors, raw

__all__ = ["module"]

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
        kernel_failures.synchronize()

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
        kernel_failures.synchronize()


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
        kernel_failures.synchronize()


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
        "deviceSynchronize": kernel_failures.synchronize,
        "CUDARuntimeError": errors.CUDADriverError,
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
        "driver": _filled("cupy.cuda.driver", {"CUDADriverError": errors.CUDADriverError}),
        "compiler": _filled("cupy.cuda.compiler", {"CompileException": errors.CompileException}),
        "function": _filled("cupy.cuda.function", {"Function": raw.Function}),
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
        return arrays.wrapped(found) if callable(found) and not isinstance(found, type) else found

    made.__getattr__ = find  # type: ignore[method-assign]
    return made


def _top() -> ModuleType:
    made = _of_numpy("cupy", np)
    own = {name: getattr(arrays, name) for name in ("ndarray", "empty", "empty_like", "asnumpy", "asarray")}
    made.__dict__.update(own)
    made.__dict__.update(
        __version__="14.2.0",
        array=lambda value, dtype=None, copy=True: np.array(arrays.asarray(value, dtype)).view(arrays.ndarray),
        ascontiguousarray=lambda value, dtype=None: arrays.on_device(
            np.ascontiguousarray(arrays.asarray(value, dtype))
        ),
        from_dlpack=arrays.asarray,
        RawModule=raw.RawModule,
        RawKernel=raw.RawKernel,
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
