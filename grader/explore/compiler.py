"""Compile a Triton kernel for a GPU without having one, and read the memory instructions that came out."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

__all__ = ["count_instructions", "memory_instructions"]

_ACCESS = re.compile(r"(?:\.v(?P<lanes>\d+))?\.[bfus](?P<bits>\d+)\s")

_COMPILE = """
import importlib.util, json, sys
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

path, name, job = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
spec = importlib.util.spec_from_file_location("kernel", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
kernel = getattr(module, name)
divisible = {(kernel.arg_names.index(a),): [["tt.divisibility", 16]] for a in job["divisible"]}
source = ASTSource(fn=kernel, signature=job["signature"], constexprs=job["constants"], attrs=divisible)
print(json.dumps(triton.compile(source, target=GPUTarget("cuda", job["capability"], 32)).asm["ptx"]))
"""


def memory_instructions(
    kernel: Any,
    signature: dict[str, str],
    constants: dict[str, int],
    divisible_by_16: tuple[str, ...] = (),
    capability: int = 90,
) -> dict[str, int]:
    """Compile `kernel` and count its loads and stores by the width that one thread moves with one instruction.

    Args:
        kernel: a `@triton.jit` function.
        signature: the type of each argument, e.g. `{"x_ptr": "*fp32", "n": "i32"}`.
        constants: the values of the `tl.constexpr` arguments.
        divisible_by_16: the arguments of which the compiler may assume it (Triton finds this out at each launch).
        capability: the target, 90 for an H100 or H200.

    Raises:
        RuntimeError: the kernel does not compile; the message is the compiler's last line.
    """
    ptx = _ptx(kernel, signature, constants, divisible_by_16, capability)
    counts: Counter[str] = Counter()
    for line in ptx.splitlines():
        for short, word in (("ld.global", "load"), ("st.global", "store")):
            if short in line:
                counts[f"{word} of {_width(line)} bytes"] += 1
    return dict(counts)


def count_instructions(
    kernel: Any,
    signature: dict[str, str],
    constants: dict[str, int],
    names: tuple[str, ...],
    divisible_by_16: tuple[str, ...] = (),
    capability: int = 90,
) -> dict[str, int]:
    """Compile `kernel` as `memory_instructions` does, and count the PTX instructions whose name begins with each name.

    Raises:
        RuntimeError: the kernel does not compile; the message is the compiler's last line.
    """
    lines = _ptx(kernel, signature, constants, divisible_by_16, capability).splitlines()
    found = [re.sub(r"^@!?%\w+\s+", "", line.strip()) for line in lines]
    return {name: sum(line.startswith(name) for line in found) for name in names}


def _ptx(
    kernel: Any, signature: dict[str, str], constants: dict[str, int], divisible: tuple[str, ...], cap: int
) -> str:
    function = inspect.unwrap(getattr(kernel, "fn", kernel))
    source = "import triton\nimport triton.language as tl\n\n" + inspect.getsource(function)
    job = {
        "signature": signature | dict.fromkeys(constants, "constexpr"),
        "constants": constants,
        "divisible": list(divisible),
        "capability": cap,
    }
    # A process of its own: this one may have Triton's interpreter in place of its compiler.
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.py")
        path.write_text(source, encoding="utf-8")
        command = [sys.executable, "-c", _COMPILE, str(path), function.__name__, json.dumps(job)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise RuntimeError(f"{function.__name__} does not compile: {last}")
    return str(json.loads(done.stdout.splitlines()[-1]))


def _width(line: str) -> int:
    match = _ACCESS.search(line)
    if match is None:
        raise RuntimeError(f"The compiler wrote a memory instruction of an unknown form: {line.strip()}")
    return int(match["lanes"] or 1) * int(match["bits"]) // 8
