"""What NVRTC makes of CUDA C++ for a GPU that need not be here: registers, and the instructions of its machine code."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from grader.worker.nvcc_by_nvrtc import no_cache_options

__all__ = ["NvrtcView", "nvrtc_view"]

_ENTRY = re.compile(r"Compiling entry function '(\S+)'.*?Used (\d+) registers", re.DOTALL)
_SPILLED = re.compile(r"(\d+) bytes spill stores")
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)[^;]*;", re.MULTILINE)
_LABEL = re.compile(r"^\.L_x_\d+:")
_OF_DOUBLES = re.compile(r"D(?:ADD|MUL|FMA|SETP|MNMX)\b|F2F\.F\d+\.F64|F2F\.F64|I2F\.F64|F2I\.F64|MUFU\.R\w+64H")
_PADDING = ("NOP",)
_LIMIT_S = 60


@dataclass(frozen=True)
class NvrtcView:
    """A source, compiled: what each kernel takes, and the SASS of all of them."""

    capability: int
    registers: dict[str, int]
    spilled_bytes: int
    sass: str

    @property
    def how(self) -> str:
        """For `compare`: where the number is from."""
        return f"compiled for sm_{self.capability}"

    @cached_property
    def instructions(self) -> list[str]:
        """The names of the instructions in their order, without what fills up the end."""
        found = _INSTRUCTION.findall(self.sass)
        return [name for name in found if name not in _PADDING]

    def count(self, what: str) -> int:
        """How many instructions have a name that begins so; "double": those that take or give a double."""
        if what == "double":
            return sum(bool(_OF_DOUBLES.match(name)) for name in self.instructions)
        return sum(name.startswith(what) for name in self.instructions)

    @property
    def kinds(self) -> Counter[str]:
        """How often each kind of instruction occurs, by the first part of its name, or two parts of `MUFU`."""
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


def nvrtc_view(source: str, *options: str, capability: int = 90) -> NvrtcView:
    """Compile `source` with NVRTC for a GPU of this compute capability (90: an H100 or H200). No GPU is needed.

    Raises:
        RuntimeError: it does not compile; the message is NVRTC's.
    """
    from cuda.bindings import nvrtc

    program = _asked(nvrtc, nvrtc.nvrtcCreateProgram(source.encode(), b"kern.cu", 0, [], []))
    try:
        given = [f"--gpu-architecture=sm_{capability}", "--ptxas-options=-v", *no_cache_options(), *options]
        (code,) = nvrtc.nvrtcCompileProgram(program, len(given), [option.encode() for option in given])
        log = b" " * _asked(nvrtc, nvrtc.nvrtcGetProgramLogSize(program))
        nvrtc.nvrtcGetProgramLog(program, log)
        said = log.decode(errors="replace").strip("\0 \n")
        if int(code):
            raise RuntimeError(f"NVRTC does not compile this:\n{said}")
        binary = b" " * _asked(nvrtc, nvrtc.nvrtcGetCUBINSize(program))
        nvrtc.nvrtcGetCUBIN(program, binary)
    finally:
        nvrtc.nvrtcDestroyProgram(program)
    registers = {name: int(count) for name, count in _ENTRY.findall(said)}
    return NvrtcView(capability, registers, sum(map(int, _SPILLED.findall(said))), _disassembled(binary))


def _asked(nvrtc: Any, result: tuple[Any, ...]) -> Any:
    if int(result[0]):
        raise RuntimeError(f"NVRTC answered {nvrtc.nvrtcGetErrorString(result[0])[1].decode()}.")
    return result[1]


def _disassembled(binary: bytes) -> str:
    import triton

    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "nvdisasm"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary)
        file.flush()
        command = [str(tool), "-c", file.name]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    if done.returncode:
        raise RuntimeError(f"nvdisasm, which comes with Triton, failed: {done.stderr.strip()}")
    lines = done.stdout.splitlines()
    return "\n".join(line for line in lines if _INSTRUCTION.match(line) or _LABEL.match(line))
