"""Put an `nvcc` on the PATH: the system's, else pip's, else this module, run with `-m`.

As a compiler it handles `nvcc --fatbin`: with NVRTC on a GPU, and with the C++ compiler in the simulator.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from grader.worker.toolchain.nvrtc import compiled, no_cache_options

_ROOT = Path(__file__).parents[3]  # the folder that contains `grader`
_SCRIPT = '#!/bin/sh\nPYTHONPATH="{root}" exec "{python}" -m grader.worker.toolchain.nvcc {compiler} "$@"\n'

_WITH_VALUE = {"-arch", "-code", "-gencode", "-o", "-odir", "-std", "-D", "-I", "-maxrregcount", "-x"}
_LONG = {
    "--gpu-architecture": "-arch", "--generate-code": "-gencode", "--output-file": "-o", "--output-directory": "-odir",
    "--std": "-std", "--define-macro": "-D", "--include-path": "-I", "--maxrregcount": "-maxrregcount",
    "--x": "-x", "--gpu-code": "-code",
}  # fmt: skip
_KINDS = {"-fatbin", "--fatbin", "-cubin", "--cubin"}
_IGNORED = re.compile(r"-O\d|--optimize=?\d?|-lineinfo|--generate-line-info|-w|-m64|--ptxas-options=.*|-Xptxas=.*")
_FAST = {"-use_fast_math", "--use_fast_math"}
_ARCHITECTURE = re.compile(r"(?:sm|compute)_(\d+[af]?)")
_ARCHITECTURES = re.compile(r"(?:sm|compute)_\d+[af]?|native|all|all-major")


def offer(simulated: bool) -> None:
    """Put a folder with an `nvcc` on this process's PATH if it needs one. A second call does nothing."""
    if os.environ.get("GRADER_NVCC") or (not simulated and shutil.which("nvcc")):
        return
    folder = None if simulated else _pip_folder()
    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix="nvcc-"))
        script = folder / "nvcc"
        compiler = "--simulated" if simulated else "--nvrtc"
        script.write_text(_SCRIPT.format(root=_ROOT, python=sys.executable, compiler=compiler))
        script.chmod(0o755)
    os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    os.environ["GRADER_NVCC"] = str(folder)


def _pip_folder() -> Path | None:
    """Return the folder of the `nvcc` that pip installs with CUDA 13."""
    try:
        found = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError):
        return None
    for root in (found.submodule_search_locations or ()) if found else ():
        for path in sorted(Path(root).glob("cu*/bin/nvcc")):
            if os.access(path, os.X_OK):
                return path.parent
    return None


@dataclass(frozen=True)
class CommandLine:
    """The source file, the output file, the options in NVRTC's syntax, and architectures such as "90"."""

    source: Path
    output: Path
    options: tuple[str, ...]
    architectures: tuple[str, ...]


def parse(arguments: Sequence[str]) -> CommandLine:
    """Parse a command line, or end the process with nvcc's message."""
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
                _fail(f"argument expected after '{word}'")
            values.setdefault(name, []).append(value if equals else rest.pop(0))
        elif word[:2] in ("-D", "-I") and len(word) > 2:
            options.append(word)
        elif not _IGNORED.fullmatch(word):
            _fail(f"Unknown option '{word}'")
    if len(sources) != 1:
        _fail("No input files specified; use option --help for more information" if not sources else "give one source")
    if not kinds:
        _fail("this replacement for nvcc makes fatbins only: nvcc --fatbin")
    source = Path(sources[0])
    if source.suffix != ".cu" and "-x" not in values:
        _fail(f"Don't know what to do with '{source}'")
    if not source.is_file():
        _fail(f"'{source}': No such file or directory", program="gcc")
    options += [f"-std={value}" for value in values.get("-std", [])]
    options += [f"{name}{value}" for name in ("-D", "-I") for value in values.get(name, [])]
    options += [f"--maxrregcount={value}" for value in values.get("-maxrregcount", [])]
    default_name = source.with_suffix("." + min(kinds)).name
    output = Path(values["-o"][-1]) if "-o" in values else Path(values.get("-odir", ["."])[-1], default_name)
    for value in values.get("-arch", []):
        if not _ARCHITECTURES.fullmatch(value):
            known = "is not defined for option 'gpu-architecture'"
            _fail(f"Unsupported gpu architecture '{value}'" if value.isdigit() else f"Value '{value}' {known}")
    named = [value for option in ("-arch", "-code", "-gencode") for value in values.get(option, [])]
    architectures = _ARCHITECTURE.findall(" ".join(named))
    return CommandLine(source, output, tuple(options), tuple(dict.fromkeys(architectures)))


def _fail(reason: str, program: str = "nvcc") -> NoReturn:
    sys.exit(f"{program} fatal   : {reason}" if program == "nvcc" else f"{program}: fatal error: {reason}")


def _compile_with_nvrtc(line: CommandLine) -> None:
    """Write a binary for the last architecture of the command line; CuPy loads it like a fatbin."""
    if not line.architectures:
        _fail("name the architecture: -arch=sm_90")
    options = (f"--gpu-architecture=sm_{line.architectures[-1]}", *no_cache_options(), *line.options)
    try:
        answer = compiled(line.source.read_bytes(), line.source.name, options)
    except RuntimeError as error:
        _fail(str(error))
    if answer.error:
        print(answer.error, file=sys.stderr)
        sys.exit(2)
    line.output.write_bytes(answer.cubin)


def _compile_for_the_cpu(line: CommandLine) -> None:
    """Build the program for its errors, and write what `RawModule(path=…)` needs to build it again."""
    from grader.worker.simulator.cupy_arrays import CompileException
    from grader.worker.simulator.cupy_kernels import MAGIC, build, kernels_in
    from grader.worker.simulator.lacks import NotSimulated

    source = line.source.read_text(encoding="utf-8")
    mark = f'#line 1 "{line.source.name}"\n'
    try:
        build(source, line.options, tuple(k.name for k in kernels_in(source) if k.plain and not k.template), mark)
    except (CompileException, NotSimulated) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    kept = {"source": source, "options": line.options, "mark": mark, "architectures": line.architectures}
    line.output.write_text(MAGIC + json.dumps(kept), encoding="utf-8")


if __name__ == "__main__":
    command_line = parse(sys.argv[2:])
    if sys.argv[1] == "--simulated":
        _compile_for_the_cpu(command_line)
    else:
        _compile_with_nvrtc(command_line)
