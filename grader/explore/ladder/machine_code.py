"""Registers and machine code (SASS) of Numba and CUDA C++ kernels, compiled without a GPU."""

from __future__ import annotations

import math
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from html import escape
from pathlib import Path
from typing import Any

from grader.explore.drawing.displays import BLUE, DARK, GREY, ORANGE, PALE, Picture, Table, chart, code_html, finish
from grader.words import plural
from grader.worker.gpu_start import give_numba_its_names
from grader.worker.toolchain.nvjitlink import assembled
from grader.worker.toolchain.nvrtc import compiled, no_cache_options

_CAPABILITY = 90
_SASS_LINE = re.compile(r"^\s+/\*(?P<address>[0-9a-f]{4,})\*/\s+(?P<text>[^;]*?)\s*;", re.MULTILINE)
_BRANCH = re.compile(r"\bBRA(?:\.\w+)*\s+(?:[^,]*,\s*)*`?\(?(?P<target>0x[0-9a-f]+)")
_FLOAT64 = re.compile(r"^(?:D(?:FMA|MUL|ADD|SETP|MNMX)|F2F\.F64|F2F\.F32\.F64|MUFU\.\w*64H)")
_SINE = "MUFU.SIN"
_REGISTERS = re.compile(r"(?i)\bused (\d+) registers")
_SPILLED = re.compile(r"(\d+) bytes spill stores")


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
        """The number of instructions in the whole kernel that begin with one of these, such as "MUFU.SIN"."""
        return sum(_bare(line).startswith(beginnings) for line in self.instructions)

    @property
    def float64(self) -> int:
        """The number of instructions that work in float64 or convert to or from it."""
        return sum(bool(_FLOAT64.match(_bare(line))) for line in self.instructions)

    @property
    def per_sample(self) -> float | None:
        """Instructions of the inner loop per sine. None if sines are not single instructions."""
        sines = sum(_bare(line).startswith(_SINE) for line in self.loop)
        return len(self.loop) / sines if sines else None

    def __repr__(self) -> str:
        return "\n".join([f"{self.title}: the loop over the samples", *self.loop])

    def _repr_html_(self) -> str:
        listing = code_html("\n".join(self.loop), "max-height:22em; line-height:1.25")
        return f"<p>{escape(self.title)}: the loop over the samples</p>{listing}"


@dataclass(frozen=True, repr=False)
class CodeTable(Table):
    """Several kernels side by side."""

    codes: tuple[MachineCode, ...]

    def _table(self) -> list[list[str]]:
        head = ["", "registers", "spilled bytes", "fast sines", "float64 instructions", "instructions per sample"]
        return [head, *([each.title, *map(str, _figures(each))] for each in self.codes)]


def compare_code(codes: Mapping[str, MachineCode]) -> CodeTable:
    """Return the figures of several kernels under these titles."""
    return CodeTable(tuple(MachineCode(**{**vars(code), "title": title}) for title, code in codes.items()))


def _figures(code: MachineCode) -> Sequence[int | str]:
    each = "not a fixed number" if code.per_sample is None else f"{code.per_sample:g}"
    return code.registers, code.spilled_bytes, code.count(_SINE), code.float64, each


def numba_code(
    kernel: Any, dtype: str = "float32", *, fastmath: bool = False, max_registers: int | None = None, arrays: int = 4
) -> MachineCode:
    """Compile a kernel of contiguous vectors as Numba would for an H100 or H200.

    Args:
        kernel: a function, or the kernel that `@cuda.jit` made from it.
        dtype: the type of the vectors' elements.
        arrays: the number of vectors that it takes.

    Raises:
        RuntimeError: Numba's simulator replaces its compiler in this process.
    """
    import numba
    from numba import cuda

    if not hasattr(cuda, "compile_ptx") or numba.config.ENABLE_CUDASIM:
        raise RuntimeError(
            "Numba's simulator compiles nothing. Restart the notebook's kernel without NUMBA_ENABLE_CUDASIM."
        )
    give_numba_its_names()
    vector = getattr(numba, dtype)[::1]
    function = getattr(kernel, "py_func", kernel)
    ptx, _ = cuda.compile_ptx(function, (vector,) * arrays, fastmath=fastmath, cc=divmod(_CAPABILITY, 10))
    cubin, log = assembled(ptx, _CAPABILITY, max_registers)
    return _read(function.__name__, cubin, log, ptx)


def built_code(build: Callable[[Any], Any], *, arrays: int = 4) -> MachineCode:
    """Compile the kernel that `build` returns for float32, with the options it passes to `cuda.jit`.

    Raises:
        TypeError: `build` does not return a Numba kernel.
        RuntimeError: Numba's simulator replaces its compiler in this process.
    """
    import numba
    from numba import cuda

    jit = cuda.jit

    def lazy(first: Any = None, **options: Any) -> Any:
        # With a signature, Numba would compile it immediately, which needs a GPU.
        return jit(first, **options) if callable(first) else jit(**options)

    cuda.jit = lazy
    try:
        kernel = build(numba.float32)
    finally:
        cuda.jit = jit
    if kernel is None:
        raise TypeError(f"{build.__name__} returned None: return the kernel.")
    if not hasattr(kernel, "py_func"):
        raise TypeError(f"{build.__name__} returned no kernel: return the result of cuda.jit.")
    options = getattr(kernel, "targetoptions", {})
    fastmath, max_registers = bool(options.get("fastmath")), options.get("max_registers")
    return numba_code(kernel, fastmath=fastmath, max_registers=max_registers, arrays=arrays)


def cuda_code(source: str, name: str, options: Sequence[str] = ()) -> MachineCode:
    """Compile CUDA C++ with NVRTC, and read the kernel `name`, which is `extern "C"`.

    Raises:
        RuntimeError: it does not compile; the message is the compiler's.
    """
    cubin, log = _compiled_by_nvrtc(source, options, _CAPABILITY)
    return _read(name, cubin, log)


def _compiled_by_nvrtc(source: str, options: Sequence[str], capability: int | str) -> tuple[bytes, str]:
    """Return the machine code (cubin) of CUDA C++, and NVRTC's log."""
    options = (f"--gpu-architecture=sm_{capability}", "--ptxas-options=-v", *no_cache_options(), *options)
    answer = compiled(source.encode(), "kern.cu", options)
    if answer.error:
        raise RuntimeError(f"NVRTC cannot compile this:\n{answer.error}")
    return answer.cubin, answer.log


def disassembled(cubin: bytes, tool: str, *options: str) -> str:
    """Return the output of a disassembler that comes with Triton.

    Raises:
        RuntimeError: it fails; the message is its own.
    """
    import triton

    path = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / tool
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run([path, *options, file.name], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise RuntimeError(f"{tool}, which comes with Triton, failed: {done.stderr.strip()}")
    return done.stdout


def _read(title: str, cubin: bytes, log: str, ptx: str = "") -> MachineCode:
    parts = disassembled(cubin, "cuobjdump", "-sass").split("Function : ")[1:]
    kernels = [part for part in parts if not part.startswith(("__internal", "$"))]
    found = [(int(each["address"], 16), each["text"]) for each in _SASS_LINE.finditer(max(kernels, key=len))]
    registers = max(map(int, _REGISTERS.findall(log)))
    spilled = max(map(int, _SPILLED.findall(log)), default=0)
    return MachineCode(title, registers, spilled, tuple(text for _, text in found), loop_of(found), ptx)


def loop_of(instructions: Sequence[tuple[int, str]]) -> tuple[str, ...]:
    """Return the innermost loop with the most sines among (address, text) instructions: the longest, or () if none.

    Loops without stores come first: for inputs without samples, compilers copy the outer loop without its inner loop.
    """
    loops = []
    for address, text in instructions:
        branch = _BRANCH.search(text)
        if branch and int(branch["target"], 16) < address:
            loops.append((int(branch["target"], 16), address))
    inner = [
        one for one in loops if not any(other != one and one[0] <= other[0] and other[1] <= one[1] for other in loops)
    ]
    bodies = [tuple(text for address, text in instructions if low <= address <= high) for low, high in inner]

    def rank(body: tuple[str, ...]) -> tuple[bool, int, int]:
        sines = sum(_SINE in line for line in body)
        return bool(sines) and not any(_bare(line).startswith("STG") for line in body), sines, len(body)

    return max(bodies, key=rank, default=())


def _bare(line: str) -> str:
    """Return the instruction without its predicate."""
    return re.sub(r"^@!?U?P\w+\s+", "", line)


_ENTRY = re.compile(r"Compiling entry function '(\S+)'.*?Used (\d+) registers", re.DOTALL)
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)[^;]*;", re.MULTILINE)
_LABEL = re.compile(r"^\.L_x_\d+:")
_OF_DOUBLES = re.compile(r"D(?:ADD|MUL|FMA|SETP|MNMX)\b|F2F\.F\d+\.F64|F2F\.F64|I2F\.F64|F2I\.F64|MUFU\.R\w+64H")


@dataclass(frozen=True)
class NvrtcView:
    """Compiled CUDA C++: registers per kernel, spilled bytes, and the SASS of all kernels."""

    capability: int | str
    registers: dict[str, int]
    spilled_bytes: int
    sass: str

    @property
    def how(self) -> str:
        """The source of the numbers, for `compare`."""
        return f"compiled for sm_{self.capability}"

    @cached_property
    def instructions(self) -> list[str]:
        """The instruction names in order, without padding at the end."""
        return [name for name in _INSTRUCTION.findall(self.sass) if name != "NOP"]

    def count(self, what: str) -> int:
        """The number of instructions whose name begins with `what`; "double" counts those that use a double."""
        if what == "double":
            return sum(bool(_OF_DOUBLES.match(name)) for name in self.instructions)
        return sum(name.startswith(what) for name in self.instructions)

    @property
    def kinds(self) -> Counter[str]:
        """Instruction counts by the first part of the name, or the first two for `MUFU`."""
        return Counter(
            ".".join(name.split(".")[:2]) if name.startswith("MUFU") else name.split(".")[0]
            for name in self.instructions
        )

    def _facts(self) -> list[tuple[str, str]]:
        found = [(f"registers of {name}", str(count)) for name, count in self.registers.items()]
        kinds = ", ".join(f"{count} {name}" for name, count in self.kinds.most_common())
        return [
            ("compiled for", f"sm_{self.capability}"),
            *found,
            ("spilled, bytes", str(self.spilled_bytes)),
            ("instructions", f"{len(self.instructions)}: {kinds}"),
        ]

    def __repr__(self) -> str:
        return "\n".join(f"{name:>24}: {value}" for name, value in self._facts())

    def _repr_html_(self) -> str:
        left = "text-align:left; vertical-align:top"
        head = f"{left}; white-space:nowrap"
        rows = "".join(
            f"<tr><th style='{head}'>{escape(name)}</th><td style='{left}'>{escape(value)}</td></tr>"
            for name, value in self._facts()
        )
        code = escape("\n".join(line.rstrip() for line in self.sass.splitlines() if line.strip()))
        listing = (
            f"<details><summary>The machine code (SASS)</summary><pre style='font-size:12px'>{code}</pre></details>"
        )
        return f"<table>{rows}</table>{listing}"


def nvrtc_view(source: str, *options: str, capability: int | str = _CAPABILITY) -> NvrtcView:
    """Compile `source` with NVRTC for a GPU of this compute capability (90: an H100 or H200). No GPU is needed.

    Raises:
        RuntimeError: it does not compile; the message is NVRTC's.
    """
    cubin, said = _compiled_by_nvrtc(source, options, capability)
    registers = {name: int(count) for name, count in _ENTRY.findall(said)}
    lines = disassembled(cubin, "nvdisasm", "-c").splitlines()
    sass = "\n".join(line for line in lines if _INSTRUCTION.match(line) or _LABEL.match(line))
    return NvrtcView(capability, registers, sum(map(int, _SPILLED.findall(said))), sass)


_KERNEL = """
def power(t, y, freqs, out):
    for i in range({first}, {count}, {stride}):
        w = freqs[i]
        xc = xs = cc = ss = cs = {zero}
{loop}
            c, s = math.cos(w * t[j]), math.sin(w * t[j])
            xc += y[j] * c
            xs += y[j] * s
            cc += c * c
            ss += s * s
            cs += c * s
{step}
        tau = math.atan2({two} * cs, cc - ss) / ({two} * w)
        c, s = math.cos(w * tau), math.sin(w * tau)
        along = (c * xc + s * xs) ** 2 / (c * c * cc + {two} * c * s * cs + s * s * ss)
        across = (c * xs - s * xc) ** 2 / (c * c * ss - {two} * c * s * cs + s * s * cc)
        out[i] = {half} * (along + across)
"""
_WIDE = {"first": "cuda.grid(1)", "count": "freqs.size", "stride": "cuda.gridsize(1)"}
_PLAIN = _WIDE | {"zero": "0.0", "two": "2.0", "half": "0.5", "loop": "        for j in range(t.size):", "step": ""}
_TYPED = _PLAIN | {f"{name}": f"real({value})" for name, value in (("zero", 0.0), ("two", 2.0), ("half", 0.5))}
_TYPED |= {"first": "int32(cuda.grid(1))", "count": "int32(freqs.size)", "stride": "int32(cuda.gridsize(1))"}
_TYPED["loop"] = "        for j in range(int32(t.size)):"
_UNSIGNED = _TYPED | {
    "loop": "        j, samples = uint32(0), uint32(t.size)\n        while j < samples:",
    "step": "            j = uint32(j + uint32(1))",
}
_CUDA = r"""
extern "C" __global__ void power(int samples, int count, const float* __restrict__ t, const float* __restrict__ y,
                                 const float* __restrict__ freqs, float* __restrict__ out) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        float w = freqs[i], xc = 0, xs = 0, cc = 0, ss = 0, cs = 0;
        for (int j = 0; j < samples; ++j) {
            float c = cosf(w * t[j]), s = sinf(w * t[j]);
            xc += y[j] * c;
            xs += y[j] * s;
            cc += c * c;
            ss += s * s;
            cs += c * s;
        }
        float tau = atan2f(2 * cs, cc - ss) / (2 * w), c = cosf(w * tau), s = sinf(w * tau);
        float a = c * xc + s * xs, b = c * xs - s * xc;
        out[i] = 0.5f * (a * a / (c * c * cc + 2 * c * s * cs + s * s * ss)
                         + b * b / (c * c * ss - 2 * c * s * cs + s * s * cc));
    }
}
"""
TITLES = {
    "baseline": "Numba, baseline", "typed": "Numba, explicit types", "fastmath": "Numba, fast math",
    "unsigned": "Numba, fast math, unsigned index", "cuda": "CUDA C++", "cuda fast": "CUDA C++, fast math",
}  # fmt: skip


def compiled_ladder(
    *rungs: str, max_registers: int | None = None, yours: Callable[[Any], Any] | None = None
) -> CodeTable:
    """Return the figures of compiled rungs side by side. No GPU is needed.

    Args:
        rungs: of "baseline", "typed", "fastmath", "unsigned", "cuda" and "cuda fast".
        max_registers: a register limit for Numba's kernels.
        yours: builds a kernel of four vectors, given their element type. It is left out until it is written.
    """
    cap = "" if max_registers is None else f", at most {plural(max_registers, 'register')}"
    codes = {TITLES[rung] + cap: _compiled(rung, max_registers) for rung in rungs}
    if yours is not None:
        try:
            codes["yours"] = built_code(yours)
        except NotImplementedError as error:
            print(f"Yours is left out: {error}.")
    return compare_code(codes)


def ladder_loop(rung: str) -> MachineCode:
    """Return the machine code of a rung, displayed as its loop over the samples."""
    return _compiled(rung, None)


@cache
def _compiled(rung: str, max_registers: int | None) -> MachineCode:
    if rung.startswith("cuda"):
        return cuda_code(_CUDA, "power", ("--use_fast_math",) if rung == "cuda fast" else ())
    from numba import cuda, float32, int32, uint32

    scope: dict[str, Any] = {"math": math, "cuda": cuda, "real": float32, "int32": int32, "uint32": uint32}
    exec(_KERNEL.format(**{"baseline": _PLAIN, "unsigned": _UNSIGNED}.get(rung, _TYPED)), scope)
    return numba_code(scope["power"], fastmath=rung in ("fastmath", "unsigned"), max_registers=max_registers)


KINDS = {  # in drawing order; the first match counts
    "sine and cosine": r"MUFU\.(SIN|COS)",
    "float32 arithmetic": r"F(MUL|FMA|ADD)\b",
    "loads": r"LD[GS]\b",
    "indices, addresses and the loop": "",
}
_LOOKS = ((ORANGE, ""), (BLUE, ""), (PALE, "//"), (GREY, "xx"))


def loop_parts(code: MachineCode) -> dict[str, float]:
    """Return the instructions per sample of the loop over the samples, by purpose.

    Raises:
        ValueError: the kernel has no single-instruction sines, so its samples per pass cannot be counted.
    """
    if code.per_sample is None:
        raise ValueError(f"{code.title} does not take sines in single instructions: choose a kernel with fast math.")
    samples = len(code.loop) / code.per_sample
    counts = dict.fromkeys(KINDS, 0)
    for line in code.loop:
        counts[next(kind for kind, pattern in KINDS.items() if re.match(pattern, _bare(line)))] += 1
    return {kind: count / samples for kind, count in counts.items()}


def draw_loops(*rungs: str) -> Picture:
    """Draw one bar per rung, "fastmath", "unsigned" or "cuda fast": the instructions of its loop per sample."""
    parts = {TITLES[rung]: loop_parts(ladder_loop(rung)) for rung in rungs}
    figure, axes = chart(9, 0.75 * len(parts) + 1.3)
    for row, counts in enumerate(parts.values()):
        left = 0.0
        for (kind, count), (colour, hatch) in zip(counts.items(), _LOOKS, strict=True):
            label = kind if row == 0 else None
            axes.barh(row, count, left=left, color=colour, hatch=hatch, edgecolor=DARK, linewidth=0.6, label=label)
            left += count
        axes.text(left + 0.3, row, f"{left:g}", va="center")
    axes.set_yticks(range(len(parts)), parts)
    axes.invert_yaxis()
    axes.set_xlabel("instructions of the inner loop per sample")
    axes.legend(loc="lower right", frameon=False)
    said = "; ".join(
        f"{title}: {sum(counts.values()):g}, {counts['indices, addresses and the loop']:g} of them for indices, "
        "addresses and the loop"
        for title, counts in parts.items()
    )
    return finish(figure, f"Instructions of the inner loop per sample. {said}.")
