"""`RawModule` and `RawKernel`: found by name, launched with arguments that are copied byte for byte."""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from grader.worker.cuda_on_cpu import line_mark
from grader.worker.cuda_on_cpu.kernel_failures import watch
from grader.worker.cuda_on_cpu.lines import cell_of_caller
from grader.worker.cupy_on_cpu.arrays import ndarray
from grader.worker.cupy_on_cpu.build import FILE, build, checked_options
from grader.worker.cupy_on_cpu.errors import CUDADriverError
from grader.worker.cupy_on_cpu.sources import Kernel, kernels_in

__all__ = ["MAGIC", "Function", "RawKernel", "RawModule"]

MAGIC = "cuda-on-cpu fatbin\n"  # how a file begins that this machine's `nvcc` wrote
_SLOT_BYTES = 16  # of an argument: what is beyond it is 0


class RawModule:
    """The kernels of a source, or of a file that `nvcc` wrote."""

    def __init__(
        self,
        code: str | None = None,
        *,
        path: Any = None,
        options: Sequence[str] = (),
        backend: str = "nvrtc",
        translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False,
        name_expressions: Sequence[str] | None = None,
        jitify: bool = False,
    ) -> None:
        if (code is None) == (path is None):
            raise TypeError("Exactly one of `code` and `path` keyword arguments must be given.")
        if path is not None and not isinstance(path, str):  # nor does CuPy take a Path
            raise TypeError(f"Argument 'path' has incorrect type (expected str, got {type(path).__name__})")
        if path is not None and name_expressions is not None:
            raise ValueError("name_expressions cannot be used with path")
        self.options, self.name_expressions = checked_options(options), tuple(name_expressions or ())
        self.code, self.file_path, self.backend = code, path, backend
        self._mark = ""
        if path is not None:
            self.code, self.options, self._mark = _loaded(Path(path))
        assert self.code is not None
        self._kernels = {kernel.name: kernel for kernel in kernels_in(self.code)}
        self._mark = self._mark or line_mark(self.code, FILE, cell_of_caller())
        if self.name_expressions:
            self.compile()

    def compile(self, log_stream: Any = None) -> None:
        """Builds it now, not at the first `get_function`."""
        self._library()

    def get_function(self, name: str) -> Function:
        """The kernel of this name: a symbol, or one of the name expressions."""
        library = self._library()
        names = self._names()
        if name not in names:
            raise CUDADriverError(f"CUDA_ERROR_NOT_FOUND: named symbol not found: {self._why_not(name)}")
        kernel = self._kernels.get(name.partition("<")[0].strip().rpartition("::")[2])
        return Function(library, names.index(name), name, kernel)

    def _names(self) -> tuple[str, ...]:
        plain = (name for name, kernel in self._kernels.items() if kernel.plain and not kernel.template)
        return (*plain, *self.name_expressions)

    def _library(self) -> Any:
        assert self.code is not None
        path = str(build(self.code, self.options, self._names(), self._mark, self.name_expressions))
        watch(path)
        return ctypes.CDLL(path)

    def _why_not(self, name: str) -> str:
        kernel = self._kernels.get(name.partition("<")[0].strip())
        if kernel is None:
            return f"the source has no kernel {name!r}"
        if kernel.template:
            return f"{kernel.name!r} is a template: name it in name_expressions, such as '{kernel.name}<float>'"
        return f'C++ mangles the name of {name!r}: write `extern "C"` before `__global__`, or use name_expressions'


class RawKernel:
    """One kernel of a source, which must be `extern "C"`."""

    def __init__(
        self, code: str, name: str, options: Sequence[str] = (), backend: str = "nvrtc", **keywords: Any
    ) -> None:
        self.code, self.name = code, name
        self._module = RawModule(code=code, options=options, backend=backend, **keywords)
        self._function: Function | None = None

    @property
    def kernel(self) -> Function:
        """Built where it is first asked for."""
        if self._function is None:
            self._function = self._module.get_function(self.name)
        return self._function

    def compile(self, log_stream: Any = None) -> None:
        """Builds it now, not at the first launch."""
        self._module.compile()

    def __call__(self, grid: Any, block: Any, args: Any, *, shared_mem: int = 0, stream: Any = None) -> None:
        self.kernel(grid, block, args, shared_mem=shared_mem)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kernel, name)


class Function:
    """A kernel that can be launched: `function((blocks,), (threads,), (arguments, …))`."""

    def __init__(self, library: Any, number: int, name: str, kernel: Kernel | None) -> None:
        self.name = name
        self._enter = library[f"cuda_on_cpu_enter_{number}"]
        self._parameters = int(library[f"cuda_on_cpu_parameters_{number}"]())
        self._failure = library.cuda_on_cpu_failure
        self._failure.restype = ctypes.c_char_p
        self._clear = library.cuda_on_cpu_clear
        self.max_threads_per_block = (kernel.most_threads if kernel else None) or 1024

    def __getattr__(self, name: str) -> Any:
        if name in ("num_regs", "attributes", "local_size_bytes", "shared_size_bytes", "ptx_version", "binary_version"):
            raise AttributeError(f"{name!r} is known only where the kernel was compiled for a GPU.")
        raise AttributeError(name)

    def __call__(self, grid: Any, block: Any, args: Any, *, shared_mem: int = 0, stream: Any = None) -> None:
        sizes = (*_three(grid, "grid"), *_three(block, "block"))
        arguments = [_bytes_of(value, number, self.name) for number, value in enumerate(args, start=1)]
        if len(arguments) != self._parameters:
            raise CUDADriverError(
                f"CUDA_ERROR_INVALID_VALUE: the kernel {self.name!r} has {self._parameters} parameters, and "
                f"{len(arguments)} arguments were given. (On a GPU the driver does not count them: it reads "
                "whatever lies in memory.)"
            )
        if sizes[3] * sizes[4] * sizes[5] > self.max_threads_per_block:
            raise CUDADriverError(
                f"CUDA_ERROR_INVALID_VALUE: invalid argument: {self.name!r} was compiled for blocks of at most "
                f"{self.max_threads_per_block} threads (__launch_bounds__, or what a GPU has), and the launch asks for "
                f"{sizes[3] * sizes[4] * sizes[5]}"
            )
        slots = [ctypes.create_string_buffer(each, max(len(each), _SLOT_BYTES)) for each in arguments]
        addresses = (ctypes.c_void_p * max(len(slots), 1))(*(ctypes.addressof(slot) for slot in slots))
        self._enter((ctypes.c_uint * 6)(*sizes), ctypes.c_size_t(shared_mem), _line_of_caller(), addresses)
        text = self._failure()
        if text and self._clear():
            raise CUDADriverError(f"CUDA_ERROR_INVALID_VALUE: invalid argument: {text.decode()}")


def _bytes_of(value: Any, number: int, kernel: str) -> bytes:
    """What the driver is pointed to: an address, or the bytes of a number in the type that CuPy gives it."""
    if isinstance(value, ndarray):
        return value.ctypes.data.to_bytes(8, sys.byteorder)
    if value is None:
        return bytes(8)
    if isinstance(value, np.generic):
        return value.tobytes()
    for kind, scalar in ((bool, np.bool_), (int, np.int64), (float, np.float64), (complex, np.complex128)):
        if isinstance(value, kind):
            return np.asarray(value, scalar).tobytes()
    raise TypeError(
        f"Unsupported type {type(value)} of argument {number} of {kernel!r}: a kernel takes CuPy's arrays and numbers."
    )


def _three(sizes: Any, what: str) -> tuple[int, int, int]:
    if not isinstance(sizes, tuple | list) or not 1 <= len(sizes) <= 3:
        raise TypeError(f"the {what} must be a tuple of one to three ints, such as ({sizes},), not {sizes!r}")
    if not all(isinstance(size, int | np.integer) for size in sizes):
        raise TypeError(f"the {what} must be ints, not {sizes!r}: is there a `/` in place of a `//`?")
    return (*(int(size) for size in sizes), *(1,) * (3 - len(sizes)))  # type: ignore[return-value]


def _line_of_caller() -> int:
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    return frame.f_lineno


def _loaded(path: Path) -> tuple[str, tuple[str, ...], str]:
    """The source, options and mark in a file of this machine's `nvcc`."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        raise CUDADriverError(f"CUDA_ERROR_FILE_NOT_FOUND: file not found: {path}") from None
    if not text.startswith(MAGIC):
        raise CUDADriverError(f"CUDA_ERROR_INVALID_IMAGE: device kernel image is invalid: {path} is no fatbin")
    held = json.loads(text.removeprefix(MAGIC))
    return held["source"], tuple(held["options"]), held["mark"]


_OURS = str(Path(__file__).parent)
