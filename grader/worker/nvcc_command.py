"""What a command line of `nvcc --fatbin` asks for, as far as the stand-ins for nvcc know it."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Asked", "read", "refuse"]

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
