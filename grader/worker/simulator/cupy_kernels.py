"""CuPy's `RawModule` and `RawKernel` on the CPU: built by the C++ compiler, with arguments copied byte for byte."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import json
import math
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from grader.protocol.target import target
from grader.words import plural
from grader.worker.simulator import cupy_streams, header_build, tally
from grader.worker.simulator.accesses import NOTE, observe
from grader.worker.simulator.cuda_library import Buffer, send_buffers, watch
from grader.worker.simulator.cuda_source import COMPILER_FLAGS, macros_of, translate
from grader.worker.simulator.cuda_tokens import Token, declarations, name_of_function, opening, tokenize
from grader.worker.simulator.cupy_arrays import CompileException, CUDADriverError, ndarray
from grader.worker.simulator.lacks import NotSimulated, is_of_cuda, lacking
from grader.worker.simulator.multiprocessors import exchanged
from grader.worker.toolchain import forked
from grader.worker.toolchain.compiler_errors import cell_of_caller, line_mark, place_of_error
from grader.worker.toolchain.machine_facts import kernel_facts
from grader.worker.toolchain.nvrtc import compiled, no_cache_options, ptx_facts

FILE = "kern.cu"
MAGIC = "cuda-on-cpu fatbin\n"  # the beginning of a file that the simulator's `nvcc` wrote
_SLOT_BYTES = 16  # per argument, padded with 0
_COMPILE_LIMIT_S = 60
_MAX_CHARACTERS = 4000  # of the compiler's output
_MOST_THREADS = 1024  # of a block
_FOLDER = str(Path(__file__).parent)
_FAST = re.compile(r"--?use_fast_math\Z")
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(?:if|define)", re.MULTILINE)
_INCLUDE_LINE = re.compile(r"^[ \t]*#[ \t]*(?:include|pragma)\b.*", re.MULTILINE)
_PREPROCESS = ("-E", "-P", "-w", "-x", "c++", "-std=c++20", "-")
_NOT_FOUND = re.compile(r'(?:cannot|could not) open source file "([^"]+)"')
_DEFINE = r"#\s*define\s+{name}\s+(\d+)\b|\bconstexpr\s+(?:static\s+)?(?:int|unsigned)\s+{name}\s*=\s*(\d+)"

_built: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = []  # source, options and name expressions
_loaded_before: set[tuple[str, tuple[str, ...]]] = set()  # source and options of each module


@dataclass(frozen=True)
class Kernel:
    """A `__global__` function. Without `extern "C"` its symbol is mangled, and it is not found by its name."""

    name: str
    plain: bool  # not mangled
    template: bool
    most_threads: int | None  # per block, by its launch bounds


@functools.cache
def preprocessed(source: str, options: tuple[str, ...]) -> str:
    """The source with its macros expanded and one branch of each `#if`; unchanged if that fails or there are none."""
    if not _DIRECTIVE.search(source):
        return source
    text = "\n".join([*_macros(options), _INCLUDE_LINE.sub("", source)])
    try:
        command = [*header_build.compiler(), *_PREPROCESS]
    except RuntimeError:  # the build reports it
        return source
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=_COMPILE_LIMIT_S, check=False)
    return source if done.returncode else done.stdout


def _macros(options: Sequence[str]) -> list[str]:
    """The macros that NVRTC defines, and those of the options, as lines."""
    own = ["#define __CUDACC__ 1", "#define __CUDACC_RTC__ 1", f"#define __CUDA_ARCH__ {10 * target()}"]
    return [*own, *macros_of(options)]


def kernels_in(source: str) -> list[Kernel]:
    """Return the kernels that a preprocessed source defines, in their order."""
    tokens = tokenize(source)
    parts = declarations(tokens, 0, len(tokens))
    found = (_kernel(tokens, begin, body, source) for begin, body, _ in parts if tokens[body].text == "{")
    return [kernel for kernel in found if kernel is not None]


def entries(names: Sequence[str]) -> str:
    """Return C++ to append: `cuda_on_cpu_enter_i` and `cuda_on_cpu_parameters_i` for kernel number i."""
    return "".join(
        f'\nextern "C" void cuda_on_cpu_enter_{i}(const unsigned* cuda_on_cpu_s, size_t cuda_on_cpu_b, '
        "int cuda_on_cpu_l, void** cuda_on_cpu_a) {\n"
        f"    ::cuda_on_cpu::enter(({name}), cuda_on_cpu_s, cuda_on_cpu_b, cuda_on_cpu_l, cuda_on_cpu_a);\n}}\n"
        f'extern "C" int cuda_on_cpu_parameters_{i}() {{ return ::cuda_on_cpu::parameters_of(({name})); }}\n'
        f'extern "C" const char* cuda_on_cpu_kinds_{i}() {{ return ::cuda_on_cpu::kinds_of(({name})); }}\n'
        for i, name in enumerate(names)
    )


def _kernel(tokens: list[Token], begin: int, body: int, source: str) -> Kernel | None:
    words = [token.text for token in tokens[begin:body] if not token.blank]
    marked = next((at for at in range(begin, body) if tokens[at].text == "__global__"), 0)
    name = name_of_function(tokens, marked) if "__global__" in words else 0
    if not name:
        return None
    bound = words[words.index("__launch_bounds__") + 2] if "__launch_bounds__" in words else ""
    plain = '"C"' in words or _in_block_of_c(tokens[:begin])
    return Kernel(tokens[name].text, plain, "template" in words, _number(bound, source))


def _in_block_of_c(before: list[Token]) -> bool:
    """Whether an `extern "C" {` is open after these tokens."""
    code = [token for token in before if not token.blank]
    i = len(code) - 1
    while i >= 0:
        if code[i].text == "}":
            i = opening(code, i)
        elif code[i].text == "{" and [token.text for token in code[max(0, i - 2) : i]] == ["extern", '"C"']:
            return True
        i -= 1
    return False


def _number(text: str, source: str) -> int | None:
    if text.isdigit():
        return int(text)
    found = re.search(_DEFINE.format(name=re.escape(text)), source)
    return int(found[1] or found[2]) if found else None


def checked_options(options: Sequence[str]) -> tuple[str, ...]:
    """Return the options, or raise `TypeError` as CuPy does if they are not strings in a tuple.

    A macro that follows its `-D` as an option of its own joins it.
    """
    if isinstance(options, str) or not all(isinstance(option, str) for option in options):
        raise TypeError(f"options must be a tuple of strings, such as ('--use_fast_math',); this is {options!r}")
    found: list[str] = []
    for option in options:
        if found and found[-1] in ("-D", "--define-macro"):
            found[-1] = f"-D{option}"
        else:
            found.append(option)
    return tuple(found)


@functools.cache
def build(
    source: str, options: tuple[str, ...], names: tuple[str, ...], mark: str, expressions: tuple[str, ...] = ()
) -> Path:
    """Build a library with an entry for each of `names`; `mark` is the source's `#line`.

    Raises:
        CompileException: the source, an option or a name expression is wrong.
        RuntimeError: this machine has no GCC.
    """
    accepted = _must_compile(source, options, expressions)
    folder = Path(tempfile.mkdtemp(prefix="cupy-"))
    text = folder / f"{hashlib.sha256(source.encode()).hexdigest()[:16]}.cpp"
    header = "fast_math.h" if any(map(_FAST.match, options)) else "enter.h"
    lines = ['#include "cuda_on_cpu.h"', f'#include "cuda_on_cpu/{header}"']  # before the learner's macros
    lines += _macros(options)
    text.write_text(
        "\n".join([*lines, mark + translate(source, bounds=False), '#line 1 "name_expressions"', entries(names)])
    )
    object_file, library = text.with_suffix(".o"), text.with_suffix(".so")
    flags, include, objects = header_build.parts()
    flags = ["-fPIC", "-w", *COMPILER_FLAGS, *flags, *(f"-I{each}" for each in include)]
    compiler = header_build.compiler()
    compile_it = [*compiler, "-c", *flags, str(text), "-o", str(object_file)]
    for command in (compile_it, [*compiler, "-shared", str(object_file), *objects, "-o", str(library)]):
        done = subprocess.run(command, capture_output=True, text=True, timeout=_COMPILE_LIMIT_S, check=False)
        if done.returncode:
            if what := lacking(done.stderr) or ("counterpart of this code" if accepted else ""):
                raise NotSimulated(what, place_of_error(done.stderr))
            raise CompileException(done.stderr[:_MAX_CHARACTERS], source, FILE, options)
    return library


def facts() -> list[dict[str, Any]]:
    """Return `machine_facts.kernel_facts` of all sources that were built here."""
    found: list[dict[str, Any]] = []
    for source, options, names in _built:
        report = (f"--gpu-architecture=sm_{target()}", "--ptxas-options=-v", *no_cache_options())
        answer = compiled(source.encode(), FILE, (*options, *report), names)
        found += kernel_facts(answer.ptx, answer.log)
    return found


def _must_compile(source: str, options: tuple[str, ...], names: tuple[str, ...]) -> bool:
    """Compile with NVRTC, which needs no GPU, so that only valid CUDA C++ runs in the simulator.

    Return whether NVRTC has accepted the source. False: it is not installed, or lacks a header of CUDA.
    """
    given = (f"--gpu-architecture=sm_{target()}", *options)  # with machine code: ptxas knows the GPU's limits
    try:
        answer = compiled(source.encode(), FILE, given, names)
    except (ImportError, RuntimeError):  # NVRTC is not installed: the C++ compiler must suffice
        return False
    if not answer.error:
        _built.append((source, options, names))
        forked.facts.extend(ptx_facts(answer.ptx))
        return True
    if is_of_cuda(_NOT_FOUND.search(answer.error)):
        return False
    raise CompileException(answer.error, source, FILE, options)


class RawModule:
    """The kernels of a source, or of a file that `nvcc` wrote."""

    def __init__(
        self, code: str | None = None, *, path: Any = None, options: Sequence[str] = (), backend: str = "nvrtc",
        translate_cucomplex: bool = False, enable_cooperative_groups: bool = False,
        name_expressions: Sequence[str] | None = None, jitify: bool = False,
    ) -> None:  # fmt: skip
        if (code is None) == (path is None):
            raise TypeError("Exactly one of `code` and `path` keyword arguments must be given.")
        if path is not None and not isinstance(path, str):  # CuPy does not take a Path either
            raise TypeError(f"Argument 'path' has incorrect type (expected str, got {type(path).__name__})")
        if path is not None and name_expressions is not None:
            raise ValueError("name_expressions cannot be used with path")
        self.options, self.name_expressions = checked_options(options), tuple(name_expressions or ())
        self.code, self.file_path, self.backend = code, path, backend
        self._mark = ""
        if path is not None:
            self.code, self.options, self._mark = _loaded(Path(path))
        assert self.code is not None
        if (self.code, self.options) in _loaded_before:
            forked.facts.append({"loaded_again": True})
            tally.host("builds", "RawModule")
        _loaded_before.add((self.code, self.options))
        self._kernels = {kernel.name: kernel for kernel in kernels_in(preprocessed(self.code, self.options))}
        self._mark = self._mark or line_mark(self.code, FILE, cell_of_caller())
        if self.name_expressions:
            self.compile()

    def compile(self, log_stream: Any = None) -> None:
        """Build the library now instead of in the first `get_function`."""
        self._library()

    def get_function(self, name: str) -> Function:
        """Return the kernel with this symbol or name expression."""
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
        try:
            path = str(build(self.code, self.options, self._names(), self._mark, self.name_expressions))
        except CompileException as error:
            if self.backend == "nvcc" and "unrecognized option" in str(error):  # by NVRTC
                raise NotSimulated("`backend='nvcc'` with options that NVRTC does not know") from None
            raise
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
        if self._function is None:
            self._function = self._module.get_function(self.name)
        return self._function

    def compile(self, log_stream: Any = None) -> None:
        self._module.compile()

    def __call__(self, grid: Any, block: Any, args: Any, *, shared_mem: int = 0, stream: Any = None) -> None:
        self.kernel(grid, block, args, shared_mem=shared_mem, stream=stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kernel, name)


class Function:
    """A kernel that can be launched: `function((blocks,), (threads,), (arguments, …))`."""

    def __init__(self, library: Any, number: int, name: str, kernel: Kernel | None) -> None:
        self.name, self._loaded = name, library
        self._enter = library[f"cuda_on_cpu_enter_{number}"]
        self._parameters = int(library[f"cuda_on_cpu_parameters_{number}"]())
        kinds = library[f"cuda_on_cpu_kinds_{number}"]
        kinds.restype = ctypes.c_char_p
        self._kinds = kinds().decode()
        self._failure = library.cuda_on_cpu_failure
        self._failure.restype = ctypes.c_char_p
        self._clear = library.cuda_on_cpu_clear
        self.max_threads_per_block = (kernel.most_threads if kernel else None) or _MOST_THREADS

    def __getattr__(self, name: str) -> Any:
        if name in ("num_regs", "attributes", "local_size_bytes", "shared_size_bytes", "ptx_version", "binary_version"):
            raise AttributeError(f"{name!r} is known only for a kernel that was compiled for a GPU.")
        raise AttributeError(name)

    def __call__(self, grid: Any, block: Any, args: Any, *, shared_mem: int = 0, stream: Any = None) -> None:
        sizes = (*_three(grid, "grid"), *_three(block, "block"))
        if said := exchanged(grid, block):
            raise CUDADriverError(f"CUDA_ERROR_INVALID_VALUE: invalid argument: {said}")
        arguments = [_bytes_of(value, number, self.name) for number, value in enumerate(args, start=1)]
        if len(arguments) != self._parameters:
            raise CUDADriverError(
                f"CUDA_ERROR_INVALID_VALUE: wrong number of arguments for the kernel {self.name!r}: {len(arguments)} "
                f"instead of {self._parameters}. A GPU's driver does not count them and reads whatever is in memory."
            )
        for number, (value, kind) in enumerate(zip(args, self._kinds, strict=True), start=1):
            if found := _unlike(value, kind):
                raise CUDADriverError(f"CUDA_ERROR_INVALID_VALUE: argument {number} of {self.name!r} is {found}")
            if found := _other_bytes(value, kind):
                observe(NOTE, f"Argument {number} of `{self.name}` {found}", _line_of_caller())
        threads = math.prod(sizes[3:])
        if threads > _MOST_THREADS:
            raise CUDADriverError(
                "CUDA_ERROR_INVALID_VALUE: invalid argument: "
                f"a block has {plural(threads, 'thread')}; 1,024 are the limit"
            )
        if threads > self.max_threads_per_block:
            raise CUDADriverError(
                f"CUDA_ERROR_INVALID_VALUE: invalid argument: the block size is {threads}, but {self.name!r} was "
                f"compiled for blocks of at most {self.max_threads_per_block} (__launch_bounds__)"
            )
        slots = [ctypes.create_string_buffer(each, max(len(each), _SLOT_BYTES)) for each in arguments]
        addresses = (ctypes.c_void_p * max(len(slots), 1))(*(ctypes.addressof(slot) for slot in slots))
        send_buffers(self._loaded, [_buffer(value, n) for n, value in enumerate(args, 1) if isinstance(value, ndarray)])
        if any(isinstance(value, ndarray) and value.flags.writeable for value in args):
            cupy_streams.queue(stream, _line_of_caller())
        self._enter((ctypes.c_uint * 6)(*sizes), ctypes.c_size_t(shared_mem), _line_of_caller(), addresses)
        text = self._failure()
        if text and self._clear():
            raise CUDADriverError(f"CUDA_ERROR_INVALID_VALUE: invalid argument: {text.decode()}")


_NUMBERS = {"f": ("a float", 4, "np.float32"), "d": ("a double", 8, "np.float64"), "n": ("an integer", 4, "np.int32")}


def _unlike(value: Any, kind: str) -> str:
    """How an argument differs from a parameter of a kind in `enter.h`, or ""."""
    if isinstance(value, ndarray) and kind in "nfd":
        return "an array, but the kernel's parameter is a number"
    if isinstance(value, np.floating | float) and kind == "p":
        return "a number, but the kernel's parameter is a pointer"
    if isinstance(value, np.integer) and value.dtype.itemsize < 8 and kind == "p":
        return "a number, but the kernel's parameter is a pointer"
    return ""


def _other_bytes(value: Any, kind: str) -> str:
    """How the type of a number differs from that of its parameter, so that the bytes mean something else, or ""."""
    if kind not in _NUMBERS or not isinstance(value, int | float | np.number) or value == 0:
        return ""  # the bytes of 0 suit every number
    own, (name, item, scalar) = np.asarray(value).dtype, _NUMBERS[kind]
    if own.kind not in "iuf" or ((own.kind == "f") == (kind != "n") and (own.kind != "f" or own.itemsize == item)):
        return ""
    return f"is of type {own}, but the parameter is {name}, which takes the bytes as they are: pass `{scalar}(…)`."


def _buffer(array: ndarray, number: int) -> Buffer:
    """The memory of an array, or of the one that it is a view of."""
    whole: Any = array
    while isinstance(whole.base, np.ndarray):
        whole = whole.base
    low, high = np.lib.array_utils.byte_bounds(whole)
    name = f"argument {number}".encode()
    return Buffer(low, high - low, 0, array.itemsize, not array.flags.writeable, name)


def _bytes_of(value: Any, number: int, kernel: str) -> bytes:
    """Return the bytes that the driver copies: an address, or a number in the type that CuPy converts it to."""
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
        raise TypeError(f"the {what} must be ints, not {sizes!r}: did you write `/` instead of `//`?")
    return (*(int(size) for size in sizes), *(1,) * (3 - len(sizes)))  # type: ignore[return-value]


def _line_of_caller() -> int:
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_FOLDER):
        frame = frame.f_back
    return frame.f_lineno


def _loaded(path: Path) -> tuple[str, tuple[str, ...], str]:
    """Return the source, options and mark in a file of the simulator's `nvcc`.

    Raises:
        CUDADriverError: there is no such file, or it is only for later GPUs than the simulated one.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        raise CUDADriverError(f"CUDA_ERROR_FILE_NOT_FOUND: file not found: {path}") from None
    if not text.startswith(MAGIC):
        raise CUDADriverError(f"CUDA_ERROR_INVALID_IMAGE: device kernel image is invalid: {path} is not a fatbin")
    kept = json.loads(text.removeprefix(MAGIC))
    architectures = [int(each.rstrip("af")) for each in kept.get("architectures", ())]  # older files lack them
    if architectures and min(architectures) > target():  # the driver could compile PTX of an earlier one
        raise CUDADriverError(
            "CUDA_ERROR_NO_BINARY_FOR_GPU: no kernel image is available for execution on the device: "
            f"{path} is for sm_{min(architectures)}, and the GPU is sm_{target()}"
        )
    return kept["source"], tuple(kept["options"]), kept["mark"]
