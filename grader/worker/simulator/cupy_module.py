"""A replacement for CuPy without a GPU: raw kernels run on the CPU, and arrays are NumPy's.

`offer()` lets `import cupy` find it. Kernels run through `cuda_on_cpu`, which reports what they do wrong. Like the CUDA
driver, a launch copies as many bytes as the parameter has, whatever they mean.
Not simulated: time, textures, CuPy's own kernels beyond NumPy's functions, and `cupyx`.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from grader.protocol.target import target
from grader.worker.simulator import cupy_arrays, cupy_kernels, cupy_streams, tally
from grader.worker.simulator.cupy_streams import Current, Event, Stream
from grader.worker.simulator.lacks import NotSimulated
from grader.worker.simulator.multiprocessors import MULTIPROCESSORS

_ABSENT = ("save", "load", "savetxt", "memmap", "vectorize", "fromfile", "testing", "ctypeslib", "matrix")
_NUMPY_PARTS = ("fft", "linalg", "random")
_MEMORY_BYTES = 80 << 30
_UNKNOWN = """clockrate memoryclockrate globalmemorybuswidth memorybuswidth asyncenginecount canmaphostmemory
    computemode computepreemptionsupported concurrentmanagedaccess cooperativelaunch cooperativemultidevicelaunch
    eccenabled globall1cachesupported locall1cachesupported gpuoverlap deviceoverlap hostnativeatomicsupported
    integrated ismultigpuboard multigpuboardgroupid kernelexectimeout kernelexectimeoutenabled managedmemory maxpitch
    mempitch pageablememoryaccess pcibusid pcideviceid pcidomainid singletodoubleprecisionperfratio
    streamprioritiessupported surfacealignment tccdriver texturealignment texturepitchalignment persistingl2cachemaxsize
    accesspolicymaxwindowsize uuid"""


class _Known(dict[str, Any]):
    """Facts about the simulated GPU, by CuPy's names for them; of some of the names, nothing is known."""

    def __missing__(self, name: str) -> Any:
        if name.lower() in _UNKNOWN.split():
            raise NotSimulated(f"`{name}` of a device")
        raise KeyError(name)


class Device(Current):
    """`cupy.cuda.Device`: the CPU as a GPU with few multiprocessors."""

    def __init__(self, device: int | None = None) -> None:
        self.id = device or 0

    attributes = _Known(
        {
            "MultiProcessorCount": MULTIPROCESSORS, "WarpSize": 32, "MaxThreadsPerBlock": 1024,
            "MaxThreadsPerMultiProcessor": 2048, "MaxBlocksPerMultiprocessor": 32,
            "MaxBlockDimX": 1024, "MaxBlockDimY": 1024, "MaxBlockDimZ": 64,
            "MaxGridDimX": 2**31 - 1, "MaxGridDimY": 65_535, "MaxGridDimZ": 65_535,
            "MaxRegistersPerBlock": 65_536, "MaxRegistersPerMultiprocessor": 65_536,
            "MaxSharedMemoryPerBlock": 48 << 10, "MaxSharedMemoryPerBlockOptin": 227 << 10,
            "MaxSharedMemoryPerMultiprocessor": 228 << 10, "ReservedSharedMemoryPerBlock": 1 << 10,
            "TotalConstantMemory": 64 << 10, "L2CacheSize": 50 << 20, "ConcurrentKernels": 1, "UnifiedAddressing": 1,
            "ComputeCapabilityMajor": target() // 10, "ComputeCapabilityMinor": target() % 10,
        }
    )  # fmt: skip
    compute_capability = str(target())
    mem_info = (_MEMORY_BYTES, _MEMORY_BYTES)


def _properties(device: int = 0) -> dict[str, Any]:
    tally.host("asks", "getDeviceProperties")
    return _Known(
        {
            "name": b"the CPU", "multiProcessorCount": MULTIPROCESSORS, "warpSize": 32, "maxThreadsPerBlock": 1024,
            "maxThreadsPerMultiProcessor": 2048, "maxBlocksPerMultiProcessor": 32,
            "maxThreadsDim": (1024, 1024, 64), "maxGridSize": (2**31 - 1, 65_535, 65_535),
            "regsPerBlock": 65_536, "regsPerMultiprocessor": 65_536, "sharedMemPerBlock": 48 << 10,
            "sharedMemPerBlockOptin": 227 << 10, "sharedMemPerMultiprocessor": 228 << 10,
            "reservedSharedMemPerBlock": 1 << 10, "totalConstMem": 64 << 10, "totalGlobalMem": _MEMORY_BYTES,
            "l2CacheSize": 50 << 20, "concurrentKernels": 1, "unifiedAddressing": 1,
            "major": target() // 10, "minor": target() % 10,
        }
    )  # fmt: skip


_CUDA_PARTS: dict[str, dict[str, Any]] = {
    "runtime": {
        "getDeviceProperties": _properties,
        "getDeviceCount": lambda: 1,
        "getDevice": lambda: 0,
        "deviceSynchronize": lambda: Device().synchronize(),
        "CUDARuntimeError": cupy_arrays.CUDADriverError,
    },
    "driver": {"CUDADriverError": cupy_arrays.CUDADriverError},
    "compiler": {"CompileException": cupy_arrays.CompileException},
    "function": {"Function": cupy_kernels.Function},
    "nvtx": {"RangePush": lambda *a: None, "RangePop": lambda: None},
}
_CUDA: dict[str, Any] = {
    "Device": Device,
    "Stream": Stream,
    "ExternalStream": lambda ptr, device_id=-1: Stream(ptr=ptr),
    "Event": Event,
    "get_elapsed_time": lambda start, end: 1e3 * (end.at_s - start.at_s),
    "get_current_stream": lambda device_id=-1: cupy_streams.current(),
    "is_available": lambda: True,
    "__path__": [],
}
_PARTS = ("cupy.cuda", *(f"cupy.cuda.{part}" for part in _CUDA_PARTS), *(f"cupy.{part}" for part in _NUMPY_PARTS))
_built: dict[str, ModuleType] = {}


def module(name: str) -> ModuleType:
    """Return `cupy` or one of its parts. Each is made once."""
    if not _built:
        top = _built["cupy"] = _top()
        parts = {part: _module_of(f"cupy.cuda.{part}", content) for part, content in _CUDA_PARTS.items()}
        _built.update((made.__name__, made) for made in parts.values())
        top.__dict__["cuda"] = _built["cupy.cuda"] = _module_of("cupy.cuda", _CUDA | parts)
        for part in _NUMPY_PARTS:
            top.__dict__[part] = _built[f"cupy.{part}"] = _wrapped(f"cupy.{part}", getattr(np, part))
    return _built[name]


def _module_of(name: str, content: dict[str, Any]) -> ModuleType:
    made = ModuleType(name, "A part of the replacement for CuPy.")
    made.__dict__.update(content)
    return made


def _wrapped(name: str, original: Any) -> ModuleType:
    made = _module_of(name, {})

    def find(attribute: str) -> Any:
        if attribute.startswith("__") or attribute in _ABSENT or not hasattr(original, attribute):
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}")
        found = getattr(original, attribute)
        return cupy_arrays.wrapped(found) if callable(found) and not isinstance(found, type) else found

    made.__getattr__ = find  # type: ignore[method-assign]
    return made


def _top() -> ModuleType:
    made = _wrapped("cupy", np)
    asarray = cupy_arrays.asarray
    own = {name: getattr(cupy_arrays, name) for name in ("ndarray", "empty", "empty_like", "asnumpy", "asarray")}
    made.__dict__.update(
        own,
        __version__="14.2.0",
        array=lambda value, dtype=None, copy=True: np.array(asarray(value, dtype)).view(cupy_arrays.ndarray),
        ascontiguousarray=lambda value, dtype=None: cupy_arrays.on_device(np.ascontiguousarray(asarray(value, dtype))),
        from_dlpack=asarray,
        RawModule=cupy_kernels.RawModule,
        RawKernel=cupy_kernels.RawKernel,
        get_array_module=lambda *values: made,
        memoize=lambda for_each_device=False: functools.cache,
        __path__=[],
    )
    return made


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Find `cupy` and its parts before an installed CuPy, which would need a GPU."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        known = fullname == "cupy" or fullname in _PARTS
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True) if known else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def offer() -> None:
    """Let `import cupy` find the replacement in this process. A second call does nothing."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
