"""What a compiler made of a kernel: registers, and the instructions of the GPU itself (SASS). No GPU is needed.

Numba's PTX and CUDA C++ go through the libraries that run them on a GPU, too: nvJitLink and NVRTC.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from grader.worker.newer_numpy import give_numba_its_names
from grader.worker.nvcc_by_nvrtc import no_cache_options

__all__ = ["CodeTable", "MachineCode", "built_code", "compare_code", "cuda_code", "loop_of", "numba_code"]

_CAPABILITY = 90
_INSTRUCTION = re.compile(r"^\s+/\*(?P<address>[0-9a-f]{4,})\*/\s+(?P<text>[^;]*?)\s*;", re.MULTILINE)
_BRANCH = re.compile(r"\bBRA(?:\.\w+)*\s+(?:[^,]*,\s*)*`?\(?(?P<target>0x[0-9a-f]+)")
_FLOAT64 = re.compile(r"^(?:D(?:FMA|MUL|ADD|SETP|MNMX)|F2F\.F64|F2F\.F32\.F64|MUFU\.\w*64H)")
_SINE = "MUFU.SIN"
_REGISTERS = re.compile(r"(?i)\bused (\d+) registers")
_LOCAL = re.compile(r"(\d+) bytes spill stores")


@dataclass(frozen=True)
class MachineCode:
    """One kernel, compiled. `instructions` are its SASS, without predicates; `spilled_bytes` go to memory and back."""

    title: str
    registers: int
    spilled_bytes: int
    instructions: tuple[str, ...]
    loop: tuple[str, ...]
    ptx: str = ""

    def count(self, *beginnings: str) -> int:
        """How many instructions of the whole kernel begin with one of these, e.g. "MUFU.SIN"."""
        return sum(_bare(line).startswith(beginnings) for line in self.instructions)

    @property
    def float64(self) -> int:
        """How many of them work in float64 or convert to it or from it."""
        return sum(bool(_FLOAT64.match(_bare(line))) for line in self.instructions)

    @property
    def per_sample(self) -> float | None:
        """Instructions of the inner loop for each sine that it takes. None where sines are no single instructions."""
        sines = sum(_bare(line).startswith(_SINE) for line in self.loop)
        return len(self.loop) / sines if sines else None

    def __repr__(self) -> str:
        return "\n".join([f"{self.title}: the loop over the samples", *self.loop])

    def _repr_html_(self) -> str:
        lines = "\n".join(map(escape, self.loop))
        style = "max-height:22em;overflow:auto;line-height:1.25;font-family:var(--jp-code-font-family, monospace)"
        return f"<p>{escape(self.title)}: the loop over the samples</p><pre style='{style}'>{lines}</pre>"


@dataclass(frozen=True)
class CodeTable:
    """Several kernels side by side."""

    codes: tuple[MachineCode, ...]

    def _rows(self) -> list[list[str]]:
        head = ["", "registers", "spilled bytes", "sines in hardware", "float64 instructions", "instructions a sample"]
        return [head, *([each.title, *map(str, _figures(each))] for each in self.codes)]

    def __repr__(self) -> str:
        rows = self._rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join(f"{text:>{width}}" for text, width in zip(row, widths, strict=True)) for row in rows)

    def _repr_html_(self) -> str:
        head, *body = self._rows()
        lines = ["<tr>" + "".join(f"<th>{escape(text)}</th>" for text in head) + "</tr>"]
        lines += ["<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in body]
        return f"<table>{''.join(lines)}</table>"


def compare_code(codes: Mapping[str, MachineCode]) -> CodeTable:
    """The figures of several kernels, under these titles."""
    return CodeTable(tuple(MachineCode(**{**vars(code), "title": title}) for title, code in codes.items()))


def _figures(code: MachineCode) -> Sequence[int | str]:
    each = "not a fixed number" if code.per_sample is None else f"{code.per_sample:g}"
    return code.registers, code.spilled_bytes, code.count(_SINE), code.float64, each


def numba_code(
    kernel: Any, dtype: str = "float32", *, fastmath: bool = False, max_registers: int | None = None, arrays: int = 4,
    capability: int = _CAPABILITY,
) -> MachineCode:  # fmt: skip
    """Compile a kernel whose arguments are contiguous vectors, as Numba would for a GPU of this generation.

    Args:
        kernel: a function, or what `@cuda.jit` made of one.
        dtype: the type of the vectors' elements.
        arrays: how many vectors it takes.
        capability: 90 is an H100 or H200.

    Raises:
        RuntimeError: Numba's simulator stands in the place of its compiler in this process.
    """
    import numba
    from numba import cuda

    if not hasattr(cuda, "compile_ptx") or numba.config.ENABLE_CUDASIM:
        raise RuntimeError("Numba's simulator compiles nothing. Restart the kernel, without NUMBA_ENABLE_CUDASIM.")
    give_numba_its_names()
    vector = getattr(numba, dtype)[::1]
    function = getattr(kernel, "py_func", kernel)
    ptx, _ = cuda.compile_ptx(function, (vector,) * arrays, fastmath=fastmath, cc=divmod(capability, 10))
    cubin, log = _assembled(ptx, capability, max_registers)
    return _read(function.__name__, cubin, log, ptx)


def built_code(build: Callable[[Any], Any], dtype: str = "float32", *, arrays: int = 4) -> MachineCode:
    """Compile the kernel that `build` makes for elements of this type, with the options that it gives to `cuda.jit`.

    Raises:
        TypeError: it returns no kernel of Numba's.
        RuntimeError: Numba's simulator stands in the place of its compiler in this process.
    """
    import numba
    from numba import cuda

    jit = cuda.jit

    def lazy(first: Any = None, **options: Any) -> Any:
        # With a signature it would be compiled at once, for a GPU that need not be there.
        return jit(first, **options) if callable(first) else jit(**options)

    cuda.jit = lazy
    try:
        kernel = build(getattr(numba, dtype))
    finally:
        cuda.jit = jit
    if kernel is None:
        raise TypeError(f"{build.__name__} returned None: return the kernel.")
    if not hasattr(kernel, "py_func"):
        raise TypeError(f"{build.__name__} returned no kernel: return what cuda.jit makes of a function.")
    options = getattr(kernel, "targetoptions", {})
    return numba_code(
        kernel,
        dtype,
        fastmath=bool(options.get("fastmath")),
        max_registers=options.get("max_registers"),
        arrays=arrays,
    )


def cuda_code(source: str, name: str, options: Sequence[str] = (), capability: int = _CAPABILITY) -> MachineCode:
    """Compile CUDA C++ with NVRTC, and read the kernel `name`, which is `extern "C"`.

    Raises:
        RuntimeError: it does not compile; the message is the compiler's.
    """
    from cuda.bindings import nvrtc

    given = [f"-arch=sm_{capability}", "--ptxas-options=-v", *no_cache_options(), *options]
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], [])
    (status,) = nvrtc.nvrtcCompileProgram(program, len(given), [option.encode() for option in given])
    log = _taken(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program).decode(errors="replace")
    if int(status) != 0:
        raise RuntimeError(f"{name} does not compile: {log.strip(chr(0)).strip()}")
    cubin = _taken(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program)
    return _read(name, cubin, log)


def _taken(size: Any, get: Any, program: Any) -> bytes:
    _, count = size(program)
    buffer = b" " * int(count)
    get(program, buffer)
    return buffer


def _assembled(ptx: str, capability: int, max_registers: int | None) -> tuple[bytes, str]:
    """The machine code of a PTX text, and what the assembler says of it."""
    from cuda.bindings import nvjitlink

    options = [f"-arch=sm_{capability}", "-verbose"]
    if max_registers is not None:
        options.append(f"-maxrregcount={max_registers}")
    data = ptx.encode()
    handle = nvjitlink.create(len(options), options)
    try:
        nvjitlink.add_data(handle, nvjitlink.InputType.PTX, data, len(data), "kernel.ptx")
        nvjitlink.complete(handle)
        cubin = bytearray(nvjitlink.get_linked_cubin_size(handle))
        nvjitlink.get_linked_cubin(handle, cubin)
        log = bytearray(nvjitlink.get_info_log_size(handle))
        nvjitlink.get_info_log(handle, log)
    finally:
        nvjitlink.destroy(handle)
    return bytes(cubin), log.decode(errors="replace")


def _read(title: str, cubin: bytes, log: str, ptx: str = "") -> MachineCode:
    import triton

    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(cubin)
        done = subprocess.run([tool, "-sass", path], capture_output=True, text=True, check=True, timeout=60)
    kernels = [part for part in done.stdout.split("Function : ")[1:] if not part.startswith(("__internal", "$"))]
    found = [(int(each["address"], 16), each["text"]) for each in _INSTRUCTION.finditer(max(kernels, key=len))]
    registers = max(map(int, _REGISTERS.findall(log)))
    spilled = max(map(int, _LOCAL.findall(log)), default=0)
    return MachineCode(title, registers, spilled, tuple(text for _, text in found), loop_of(found), ptx)


def loop_of(instructions: Sequence[tuple[int, str]]) -> tuple[str, ...]:
    """Of (address, text): the innermost loop with the most sines; of several, the longest. Empty if there is none."""
    loops = []
    for address, text in instructions:
        branch = _BRANCH.search(text)
        if branch and int(branch["target"], 16) < address:
            loops.append((int(branch["target"], 16), address))
    inner = [
        one for one in loops if not any(other != one and one[0] <= other[0] and other[1] <= one[1] for other in loops)
    ]
    bodies = [tuple(text for address, text in instructions if low <= address <= high) for low, high in inner]
    return max(bodies, key=lambda body: (sum(_SINE in line for line in body), len(body)), default=())


def _bare(line: str) -> str:
    """The instruction without its predicate."""
    return re.sub(r"^@!?U?P\w+\s+", "", line)
