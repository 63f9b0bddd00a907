"""A source of CUDA C++ as NVRTC takes it: options, headers, errors; built by the C++ compiler, once for each text."""

from __future__ import annotations

import functools
import hashlib
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from grader.worker.cuda_on_cpu import COMPILER_FLAGS, INCLUDE, translate
from grader.worker.cupy_on_cpu.errors import CompileException
from grader.worker.cupy_on_cpu.sources import entries

__all__ = ["FILE", "build", "checked_options"]

FILE = "kern.cu"
_FAST = re.compile(r"--?use_fast_math\Z")
_MACRO = re.compile(r"(?:-D|--?define-macro=)(\w+)(?:=(.*))?\Z", re.DOTALL)
_ARCHITECTURE = "--gpu-architecture=compute_90"
_COMPILE_LIMIT_S = 60
_MOST_CHARACTERS = 4000  # of what the compiler says


def checked_options(options: Sequence[str]) -> tuple[str, ...]:
    """The options, if they are texts in a tuple.

    Raises:
        TypeError: they are not, which is what CuPy says, too.
    """
    if isinstance(options, str) or not all(isinstance(option, str) for option in options):
        raise TypeError(f"options must be a tuple of strings, such as ('--use_fast_math',); this is {options!r}")
    return tuple(options)


@functools.cache
def build(
    source: str, options: tuple[str, ...], names: tuple[str, ...], mark: str, expressions: tuple[str, ...] = ()
) -> Path:
    """The library with an entry for each of `names`, kernels and name expressions; `mark` is the source's `#line`.

    Raises:
        CompileException: the source, an option or a name is wrong.
    """
    _must_compile(source, options, expressions)
    folder = Path(tempfile.mkdtemp(prefix="cupy-"))
    text = folder / f"{hashlib.sha256(source.encode()).hexdigest()[:16]}.cpp"
    header = "fast_math.h" if any(map(_FAST.match, options)) else "enter.h"
    macros = (found for found in map(_MACRO.match, options) if found)
    lines = ['#include "cuda_on_cpu.h"', f'#include "cuda_on_cpu/{header}"']  # before any macro of a learner's
    lines += [f"#define {macro[1]} {macro[2] if macro[2] is not None else 1}" for macro in macros]
    text.write_text("\n".join([*lines, mark + translate(source), '#line 1 "name_expressions"', entries(names)]))
    library = text.with_suffix(".so")
    command = ["g++", "-shared", "-fPIC", "-w", *COMPILER_FLAGS, f"-I{INCLUDE}", str(text), "-o", str(library)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_COMPILE_LIMIT_S, check=False)
    except FileNotFoundError:
        raise RuntimeError("There is no g++ here: CUDA C++ cannot be built for the CPU.") from None
    if done.returncode:
        raise CompileException(done.stderr[:_MOST_CHARACTERS], source, FILE, options)
    return library


def _must_compile(source: str, options: tuple[str, ...], names: tuple[str, ...]) -> None:
    """NVRTC's own word on the source: it needs no GPU to compile. What it takes runs on a GPU, too."""
    from cuda.bindings import nvrtc

    try:
        program = nvrtc.nvrtcCreateProgram(source.encode(), FILE.encode(), 0, [], [])[1]
    except RuntimeError:  # its library is not here: the C++ compiler alone has to do
        return
    try:
        for name in names:
            nvrtc.nvrtcAddNameExpression(program, name.encode())
        given = [option.encode() for option in (_ARCHITECTURE, *options)]
        (code,) = nvrtc.nvrtcCompileProgram(program, len(given), given)
        if not int(code):
            return
        log = b" " * nvrtc.nvrtcGetProgramLogSize(program)[1]
        nvrtc.nvrtcGetProgramLog(program, log)
        said = log.decode("utf-8", "replace").strip("\0 \n")
        raise CompileException(
            said or f"nvrtc: error: {nvrtc.nvrtcGetErrorString(code)[1].decode()}", source, FILE, options
        )
    finally:
        nvrtc.nvrtcDestroyProgram(program)
