"""Has `nvcc` be found: the system's, else pip's, else a stand-in: NVRTC on a GPU, without one the C++ compiler."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# What a command line of `nvcc --fatbin` asks for, as far as the stand-ins for nvcc know it.

_WITH_VALUE = {"-arch", "-gencode", "-o", "-odir", "-std", "-D", "-I", "-maxrregcount"}
_LONG = {
    "--gpu-architecture": "-arch", "--generate-code": "-gencode", "--output-file": "-o", "--output-directory": "-odir",
    "--std": "-std", "--define-macro": "-D", "--include-path": "-I", "--maxrregcount": "-maxrregcount",
}  # fmt: skip
_KINDS = {"-fatbin", "--fatbin", "-cubin", "--cubin"}
_IGNORED = re.compile(r"-O\d|--optimize=?\d?|-lineinfo|--generate-line-info|-w|-m64|--ptxas-options=.*|-Xptxas=.*")
_FAST = {"-use_fast_math", "--use_fast_math"}
_ARCHITECTURE = re.compile(r"(?:sm|compute)_(\d+[af]?)")
_ARCHITECTURES = re.compile(r"(?:sm|compute)_\d+[af]?|native|all|all-major")


@dataclass(frozen=True)
class Asked:
    """The source's file, where the result goes, options in NVRTC's words, architectures such as "90"."""

    source: Path
    output: Path
    options: tuple[str, ...]
    architectures: tuple[str, ...]


def read(arguments: Sequence[str]) -> Asked:
    """The command line, or an end of the process with nvcc's words."""
    sources: list[str] = []
    values: dict[str, list[str]] = {}
    options: list[str] = []
    kinds: set[str] = set()
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        name = _LONG.get(name, name)
        if not word.startswith("-"):
            sources.append(word)
        elif word in _KINDS:
            kinds.add(word.strip("-"))
        elif word in _FAST:
            options.append("--use_fast_math")
        elif name in _WITH_VALUE:
            if not equals and not rest:
                refuse(f"argument expected after '{word}'")
            values.setdefault(name, []).append(value if equals else rest.pop(0))
        elif word[:2] in ("-D", "-I") and len(word) > 2:
            options.append(word)
        elif not _IGNORED.fullmatch(word):
            refuse(f"Unknown option '{word}'")
    if len(sources) != 1:
        refuse("No input files specified; use option --help for more information" if not sources else "give one source")
    if not kinds:
        refuse("this stand-in for nvcc makes fatbins only: nvcc --fatbin")
    source = Path(sources[0])
    if not source.is_file():
        refuse(f"'{source}': No such file or directory", kind="gcc")
    options += [f"-std={value}" for value in values.get("-std", [])]
    options += [f"{name}{value}" for name in ("-D", "-I") for value in values.get(name, [])]
    options += [f"--maxrregcount={value}" for value in values.get("-maxrregcount", [])]
    named = source.with_suffix("." + min(kinds)).name
    output = Path(values["-o"][-1]) if "-o" in values else Path(values.get("-odir", ["."])[-1], named)
    for value in values.get("-arch", []):
        if not _ARCHITECTURES.fullmatch(value):
            known = "is not defined for option 'gpu-architecture'"
            refuse(f"Unsupported gpu architecture '{value}'" if value.isdigit() else f"Value '{value}' {known}")
    architectures = _ARCHITECTURE.findall(" ".join(values.get("-arch", []) + values.get("-gencode", [])))
    return Asked(source, output, tuple(options), tuple(dict.fromkeys(architectures)))


def refuse(reason: str, kind: str = "nvcc") -> None:
    """Ends the process as nvcc does."""
    sys.exit(f"{kind} fatal   : {reason}" if kind == "nvcc" else f"{kind}: fatal error: {reason}")


# Has `nvcc` be found: the system's, else pip's, else a stand-in: NVRTC on a GPU, without one the C++ compiler.

_ROOT = Path(__file__).parents[3]  # where `grader` lies: the stand-ins are modules of it
_SCRIPT = '#!/bin/sh\nPYTHONPATH="{root}" exec "{python}" -m {module} "$@"\n'


def offer(simulated: bool) -> None:
    """Puts a folder with an `nvcc` into this process's PATH, where it needs one. A second call does nothing."""
    if os.environ.get("GRADER_NVCC"):
        return
    if not simulated and shutil.which("nvcc"):
        return
    folder = None if simulated else _of_pip()
    if folder is None:
        module = "grader.worker.simulator.cupy_nvcc" if simulated else "grader.worker.toolchain.nvcc_by_nvrtc"
        folder = Path(tempfile.mkdtemp(prefix="nvcc-"))
        script = folder / "nvcc"
        script.write_text(_SCRIPT.format(root=_ROOT, python=sys.executable, module=module))
        script.chmod(0o755)
    os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    os.environ["GRADER_NVCC"] = str(folder)


def _of_pip() -> Path | None:
    """The folder of the `nvcc` that pip brings with CUDA 13."""
    try:
        found = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError):
        return None
    for root in (found.submodule_search_locations or ()) if found else ():
        for path in sorted(Path(root).glob("cu*/bin/nvcc")):
            if os.access(path, os.X_OK):
                return path.parent
    return None
