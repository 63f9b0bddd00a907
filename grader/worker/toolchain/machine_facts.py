"""Facts about compiled kernels, from their PTX and from the assembler's report. No GPU is needed."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from grader.worker.toolchain.ptx_cycles import cycles, functions

__all__ = ["kernel_facts"]

_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*\(")
_TARGET = re.compile(r"^\.target\s+(\w+)", re.MULTILINE)
_ACCESS = re.compile(r"\b(?P<kind>ld|st)\.(?:volatile\.)?global(?P<parts>(?:[.:][\w:]+)*)")
_VECTOR, _TYPE = re.compile(r"\.v(\d+)"), re.compile(r"\.[busf](\d+)\b")
_FLOAT64 = re.compile(r"^\s*(?:@\S+\s+)?(?:add|sub|mul|fma|div|sqrt|rcp)[\w.]*\.f64\s", re.MULTILINE)
_TENSOR_CORE = re.compile(r"^\s*(?:@\S+\s+)?(?:mma|wmma\.mma|wgmma\.mma_async|tcgen05\.mma)\b", re.MULTILINE)
_ATOMIC = re.compile(r"\b(?:atom|red)\.(?:\w+\.)*?global")
_ASYNC_COPY = re.compile(r"\bcp\.(?:async|reduce)\.\w*(?:shared|bulk|ca|cg)")
_STORES_DOUBLE = re.compile(r"\bst\.global[\w.]*\.f64\b")
_FAST_SINE = re.compile(r"\b(?:sin|cos)\.approx")
_OF_KERNEL = re.compile(r"entry function '(\S+)'(.*?Used \d+ registers.*)", re.DOTALL)
_REGISTERS, _SPILLED = re.compile(r"Used (\d+) registers"), re.compile(r"(\d+) bytes spill stores")
_FRAME = re.compile(r"(\d+) bytes stack frame")
_LOCAL = re.compile(r"\b(?:ld|st)\.local\S*\s[^;]*\[(%\w+)[^\]]*\]")
_OF_FRAME = re.compile(r"\badd\.[us]64\s+(%\w+), %SPL?, \d+")  # the address of a variable
_SHARED = re.compile(r"(\d+) bytes smem")
_LIMIT_S = 20.0


def kernel_facts(ptx: str, log: str | None = None) -> list[dict[str, Any]]:
    """Return, for each kernel of the PTX, its name and the instructions in it, all as numbers.

    "load_16" counts loads of 16 bytes per thread from global memory, and "store_4" stores of 4 bytes. "float64" is
    arithmetic in double precision, "tensor_cores" products on tensor cores, and "atomics" those in global memory.
    "async_copies" are those to shared memory, and "fast_sines" sines and cosines by one instruction. "double" says
    whether results are in double precision, and `ptx_cycles` adds its estimates. The assembler's `log` tells
    "registers" and "spilled" bytes per thread and "shared" bytes per block; with None, `ptxas` is run for it, unless it
    is missing. "indexed" are bytes per thread in local memory, if an array has an index that is known only at run time.
    """
    costs = cycles(ptx)
    bodies = functions(ptx)
    found: list[dict[str, Any]] = []
    for name, body in ((name, bodies[name]) for name in _ENTRY.findall(ptx) if name in bodies):
        widths: Counter[str] = Counter()
        for one in _ACCESS.finditer(body):
            size, vector = _TYPE.findall(one["parts"]), _VECTOR.search(one["parts"])
            if size:
                kind = "load" if one["kind"] == "ld" else "store"
                widths[f"{kind}_{int(size[-1]) // 8 * (int(vector[1]) if vector else 1)}"] += 1
        found.append(
            {
                "kernel": name,
                "float64": len(_FLOAT64.findall(body)),
                "tensor_cores": len(_TENSOR_CORE.findall(body)),
                "atomics": len(_ATOMIC.findall(body)),
                "async_copies": len(_ASYNC_COPY.findall(body)),
                "fast_sines": len(_FAST_SINE.findall(body)),
                "double": bool(_STORES_DOUBLE.search(body)),
                "indexed": bool(set(_LOCAL.findall(body)) - {"%SP", "%SPL", *_OF_FRAME.findall(body)}),
                **costs.get(name, {}),
                **widths,
            }
        )
    used = _used(_assembled(ptx) if log is None else log)
    for fact in found:
        fact |= used.get(str(fact["kernel"]), {})
        frame = fact.pop("frame", 0)
        fact["indexed"] = frame if fact["indexed"] else 0
    return found


def _used(log: str) -> dict[str, dict[str, int]]:
    """Return the registers, spilled bytes and static shared memory of each kernel, by the assembler's report."""
    found = {}
    for part in log.split("Compiling ")[1:]:
        if (kernel := _OF_KERNEL.search(part)) and (registers := _REGISTERS.search(kernel[2])):
            spilled, shared = _SPILLED.search(kernel[2]), _SHARED.search(kernel[2])
            found[kernel[1]] = {"registers": int(registers[1]), "spilled": int(spilled[1]) if spilled else 0}
            found[kernel[1]] |= {"shared": int(shared[1])} if shared else {}
            found[kernel[1]] |= {"frame": int(frame[1])} if (frame := _FRAME.search(kernel[2])) else {}
    return found


def _assembled(ptx: str) -> str:
    """Return the report of `ptxas`, or "" if it is missing or fails."""
    tool, target = _ptxas(), _TARGET.search(ptx)
    if tool is None or target is None:
        return ""
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(OSError, subprocess.TimeoutExpired):
        path = Path(folder, "kernel.ptx")
        path.write_text(ptx, encoding="utf-8")
        command = [tool, "-v", f"--gpu-name={target[1]}", str(path), "-o", str(Path(folder, "kernel.cubin"))]
        return subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False).stderr
    return ""


def _ptxas() -> str | None:
    """Return Triton's `ptxas`, or the system's."""
    spec = find_spec("triton")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder, "backends", "nvidia", "bin", "ptxas")
        if path.exists():
            return str(path)
    return shutil.which("ptxas")
