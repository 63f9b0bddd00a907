"""Compile CUDA C++ with NVRTC, which needs no GPU, and read facts from PTX."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Compiled", "compiled", "no_cache_options", "ptx_facts"]

_CACHE_IGNORES_OPTIONS = (13, 0)  # the first NVRTC whose cache returns one binary with and without `--use_fast_math`
_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*\(")
_FLOAT64 = re.compile(r"^\s*(?:@\S+\s+)?[a-z][\w.]*\.f64[\w.]*\s", re.MULTILINE)
_REDUCTION = re.compile(r"^\s*mul\.f64\s.*0d3BF921FB54442D19", re.MULTILINE)  # of a large angle, by π/2 · 2^-64
_STORES_DOUBLE = re.compile(r"\bst\.global[\w.]*\.f64\b")
_FAST = re.compile(r"^\s*(?:@\S+\s+)?(?:sin|cos)\.approx", re.MULTILINE)
_STORES = re.compile(r"(?:@\S+\s+)?st\.global")
_FAST_SINE = re.compile(r"(?:@\S+\s+)?sin\.approx")
_LABEL = re.compile(r"(\$?\w+):$")
_BRANCH = re.compile(r"(?:@\S+\s+)?bra(?:\.uni)?\s+(\$?\w+);")


@dataclass(frozen=True)
class Compiled:
    """NVRTC's answer. `error` is "" if it has compiled the source; otherwise there is neither PTX nor cubin."""

    error: str
    log: str = ""
    ptx: str = ""
    cubin: bytes = b""


def compiled(source: bytes, name: str, options: Sequence[str], expressions: Sequence[str] = ()) -> Compiled:
    """Compile the source of a file `name`; the architecture is one of the options.

    `expressions` name instances of templates to compile.

    Raises:
        ImportError, RuntimeError: NVRTC is not installed, or fails without a word on the source.
    """
    from cuda.bindings import nvrtc

    def checked(answer: tuple[Any, ...]) -> Any:
        if int(answer[0]):
            raise RuntimeError(f"NVRTC failed: {nvrtc.nvrtcGetErrorString(answer[0])[1].decode()}.")
        return answer[1] if len(answer) > 1 else None

    def read(size: tuple[Any, ...], get: Any) -> bytes:
        count = int(checked(size))
        text = b" " * (count + 2)  # all of Python shares one object for `b" "`, and NVRTC would write into it
        if count:  # a virtual architecture has no cubin
            checked(get(program, text))
        return text[:count]

    program = checked(nvrtc.nvrtcCreateProgram(source, name.encode(), 0, [], []))
    try:
        for expression in expressions:
            nvrtc.nvrtcAddNameExpression(program, expression.encode())
        (code,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
        log = read(nvrtc.nvrtcGetProgramLogSize(program), nvrtc.nvrtcGetProgramLog)
        said = log.decode("utf-8", "replace").strip("\0 \n")
        if int(code):
            return Compiled(said or f"nvrtc: error: {nvrtc.nvrtcGetErrorString(code)[1].decode()}", said)
        ptx = read(nvrtc.nvrtcGetPTXSize(program), nvrtc.nvrtcGetPTX)
        cubin = read(nvrtc.nvrtcGetCUBINSize(program), nvrtc.nvrtcGetCUBIN)
        return Compiled("", said, ptx.decode("utf-8", "replace"), cubin)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def no_cache_options() -> tuple[str, ...]:
    """Return options that keep NVRTC from reusing a binary of the same source.

    The cached binary may have been built with other options, and without a compilation there is no report of registers.
    """
    from cuda.bindings import nvrtc

    _, major, minor = nvrtc.nvrtcVersion()
    return ("--no-cache",) if (int(major), int(minor)) >= _CACHE_IGNORES_OPTIONS else ()


def ptx_facts(ptx: str) -> list[dict[str, Any]]:
    """Return, for each kernel, its name, float64 and fast sine instructions, and whether its results are doubles.

    `reductions` counts the slow paths of accurate float32 sines, of three float64 instructions each.
    `bound` tells whether it has launch bounds, and `per_sine` how many instructions its innermost loop executes per
    fast sine: 0 without such a loop.
    """
    parts = _ENTRY.split(ptx)
    return [
        {
            "name": name,
            "float64": len(_FLOAT64.findall(body)),
            "double": bool(_STORES_DOUBLE.search(body)),
            "reductions": len(_REDUCTION.findall(body)),
            "fast_sines": len(_FAST.findall(body)),
            "bound": ".maxntid" in body.partition("{")[0],
            "per_sine": _per_sine(body),
        }
        for name, body in zip(parts[1::2], (part.partition("\n}")[0] for part in parts[2::2]), strict=True)
    ]


def _per_sine(body: str) -> int:
    """Return the instructions per fast sine in the innermost loop with the most of them, rounded; 0 if none has any.

    Loops without stores come first: for inputs without samples, compilers copy the outer loop without its inner loop.
    """
    labels: dict[str, int] = {}
    instructions: list[str] = []
    loops: list[tuple[int, int]] = []
    for line in map(str.strip, body.splitlines()):
        if label := _LABEL.match(line):
            labels[label[1]] = len(instructions)
        elif line.endswith(";") and not line.startswith("."):
            instructions.append(line)
            if (branch := _BRANCH.match(line)) and branch[1] in labels:
                loops.append((labels[branch[1]], len(instructions)))
    inner = [one for one in loops if not any(_holds(one, other) for other in loops)]
    sines = {one: sum(bool(_FAST_SINE.match(line)) for line in instructions[slice(*one)]) for one in inner}
    stores = {one: any(_STORES.match(line) for line in instructions[slice(*one)]) for one in inner}
    best = max(inner, key=lambda one: (bool(sines[one]) and not stores[one], sines[one]), default=None)
    return round((best[1] - best[0]) / sines[best]) if best and sines[best] else 0


def _holds(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether `one` range holds the `other`, which is shorter."""
    return one != other and one[0] <= other[0] and other[1] <= one[1]
