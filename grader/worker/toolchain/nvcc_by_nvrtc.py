"""`nvcc --fatbin` where there is a GPU and no nvcc: NVRTC's binary for one architecture, which CuPy loads as well."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from grader.worker.toolchain.nvcc import read, refuse

_IGNORES_FAST_MATH = (13, 0)  # the first whose cache gives the same binary with `--use_fast_math` and without


def no_cache_options() -> tuple[str, ...]:
    """Options that have NVRTC compile where it has a binary of the same text: that may be one of other options, and a
    compiler that is not run says nothing of registers.
    """
    from cuda.bindings import nvrtc

    _, major, minor = nvrtc.nvrtcVersion()
    return ("--no-cache",) if (int(major), int(minor)) >= _IGNORES_FAST_MATH else ()


def main(arguments: Sequence[str]) -> None:
    """One command line; of several architectures the last is built."""
    asked = read(arguments)
    if not asked.architectures:
        refuse("name the architecture: -arch=sm_90")
    from cuda.bindings import nvrtc

    source = asked.source.read_bytes()
    program = _checked(nvrtc, nvrtc.nvrtcCreateProgram(source, asked.source.name.encode(), 0, [], []))[0]
    given = (f"--gpu-architecture=sm_{asked.architectures[-1]}", *no_cache_options(), *asked.options)
    options = [option.encode() for option in given]
    (code,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    if int(code):
        size = _checked(nvrtc, nvrtc.nvrtcGetProgramLogSize(program))[0]
        log = b" " * size
        nvrtc.nvrtcGetProgramLog(program, log)
        print(log.decode(errors="replace").strip("\0 "), file=sys.stderr)
        sys.exit(2)
    size = _checked(nvrtc, nvrtc.nvrtcGetCUBINSize(program))[0]
    binary = b" " * size
    _checked(nvrtc, nvrtc.nvrtcGetCUBIN(program, binary))
    asked.output.write_bytes(binary)


def _checked(nvrtc: Any, result: tuple[Any, ...]) -> tuple[Any, ...]:
    if int(result[0]):
        refuse(f"NVRTC answered {nvrtc.nvrtcGetErrorString(result[0])[1].decode()}")
    return result[1:]


if __name__ == "__main__":
    main(sys.argv[1:])
