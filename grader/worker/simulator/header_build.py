"""Compile the simulator's headers once per judge. A cell's CUDA C++ is then built in half the time.

A trusted process builds them into a folder that workers can only read. Without them a cell compiles them itself.
Everything is built by GCC: the instrumentation and its options are GCC's, and no other compiler reads its headers.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from grader.protocol.target import PREBUILT, PREBUILT_OBJECT
from grader.worker.simulator.cuda_source import COMPILER_FLAGS, INCLUDE, zeroes_variables

__all__ = ["Parts", "build", "compiler", "parts", "use_compiler"]

_HEADER = "cuda_on_cpu.h"
_LINKED = "-DCUDA_ON_CPU_LINKED"  # the functions of `instrumented.h` come from the object
_LIMIT_S = 60.0
_OF_GCC = "Free Software Foundation"  # in its answer to --version, by whatever name it is called


class Parts(NamedTuple):
    """Additions to a cell's build: compiler flags, folders of headers, and objects to link."""

    flags: Sequence[str]
    include: Sequence[str]
    objects: Sequence[str]


def build(folder: Path) -> None:
    """Write the precompiled header and the object into `folder`, unless a compiler fails or there is none."""
    try:
        common = [*compiler(), "-fPIC", "-w", *COMPILER_FLAGS]
    except RuntimeError:
        return
    source = str(INCLUDE / _HEADER)
    unfinished = folder / "unfinished.o"  # a file in `folder` would include the built header
    header = [*common, _LINKED, "-x", "c++-header", source, "-o", str(folder / f"{_HEADER}.gch")]
    functions = [*common, "-x", "c++", "-c", source, "-o", str(unfinished)]
    try:
        with subprocess.Popen(functions, stderr=subprocess.DEVNULL) as other:
            done = subprocess.run(header, stderr=subprocess.DEVNULL, timeout=_LIMIT_S, check=False)
            if not (done.returncode or other.wait(_LIMIT_S)):
                unfinished.rename(folder / PREBUILT_OBJECT)
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"The simulator's headers were not built: {error}", file=sys.stderr)


def parts() -> Parts:
    """Return the built parts, or else the headers alone."""
    folder = os.environ.get(PREBUILT, "")
    built = Path(folder, PREBUILT_OBJECT)
    if not folder or zeroes_variables() or not built.exists():
        return Parts([], [str(INCLUDE)], [])
    return Parts([_LINKED], [folder, str(INCLUDE)], [str(built)])


def compiler() -> list[str]:
    """Return the command of GCC for C++: that of CXX if it is one, otherwise `g++` or `c++`.

    Raises:
        RuntimeError: this machine has none.
    """
    return _gcc(os.environ.get("CXX", ""), os.environ.get("PATH", os.defpath)).copy()


@functools.cache
def _gcc(wanted: str, path: str) -> list[str]:
    commands = [["g++"], ["c++"]]
    with contextlib.suppress(ValueError):  # an unclosed quotation mark
        commands.insert(0, shlex.split(wanted))
    for command in filter(None, commands):
        if shutil.which(command[0], path=path) is None:
            continue
        answer = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=_LIMIT_S, check=False)
        if _OF_GCC in answer.stdout:
            return command
    raise RuntimeError(
        "g++: not found. Without a GPU, CUDA C++ is built by GCC, and this machine has none. "
        "`grader doctor` shows the command that installs it."
    )


def use_compiler() -> None:
    """Let torch find ninja, which pip installs with Python, and `compiler()`.

    Raises:
        RuntimeError: this machine has no GCC.
    """
    programs, path = os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)
    if programs not in path.split(os.pathsep):
        os.environ["PATH"] = os.pathsep.join([path, programs])  # last, so that it replaces nothing
    os.environ["CXX"] = shlex.join(compiler())
