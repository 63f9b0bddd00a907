"""Compile Triton kernels in a separate process, without a GPU and without Triton's interpreter.

`compile_process` is the program that runs there.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

_LIMIT_S = 120.0
_LAYOUT = ("swizzle_byte_width", "element_bitwidth", "rank", "transposed", "fp4_padded")
_PROCESS = Path(__file__).with_name("compile_process.py")


class CompileFailed(RuntimeError):
    """The kernel does not compile; the message is the compiler's own."""


class CannotBeSeen(CompileFailed):
    """The compile process cannot reach the kernel, which may be right."""


class Compiler:
    """The compile process, started by the first request. Use it in a `with` statement, or close it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def compile(
        self, path: Path, name: str, arguments: dict[str, Any], capability: int, extras: bool = False
    ) -> dict[str, Any]:
        """Return `{"ttir", "ttgir", "llir", "ptx", "num_warps", "num_stages", "shared_bytes"}` of a kernel in a file.

        `arguments` are those of a launch, by name and as `described` returns them, including options such as
        `num_warps`. With `extras` there are also "cubin" (its path) and "allocated", the TTGIR with the offsets of
        buffers in shared memory.

        Raises:
            CannotBeSeen: the file has no such kernel at module level.
            CompileFailed: the kernel does not compile, or the process ended.
        """
        request = {"path": str(path), "name": name, "arguments": arguments, "capability": capability, "extras": extras}
        return self._answer(request)

    def lower(self, ttgir: str, capability: int) -> str:
        """Compile TritonGPU IR to PTX, or raise `CompileFailed`."""
        return str(self._answer({"name": "the text", "ttgir": ttgir, "capability": capability, "extras": False})["ptx"])

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        process = self.start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            waiting = select.poll()
            waiting.register(process.stdout, select.POLLIN)
            ready = waiting.poll(1e3 * _LIMIT_S)
            answer = json.loads(process.stdout.readline()) if ready else {"error": f"it took more than {_LIMIT_S:g} s"}
        except (OSError, ValueError):
            answer = {"error": "the process that compiles has ended"}
        if "error" in answer:
            if answer.get("absent"):
                raise CannotBeSeen(answer["error"])
            self.close()
            raise CompileFailed(f"{request['name']} does not compile: {answer['error']}")
        return dict(answer)

    def start(self) -> subprocess.Popen[bytes]:
        """Start the process if it is not running; it does its imports before the first request."""
        if self._process is None:
            environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(_PROCESS)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
            )
        return self._process

    def close(self) -> None:
        """End the process; the next request starts another."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def __enter__(self) -> Compiler:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def described(value: Any) -> Any:
    """Return a launch's argument as JSON: what Triton's compiler needs to know, without data.

    Raises:
        CannotBeSeen: this type of argument is not supported.
    """
    if hasattr(value, "data_ptr"):
        return {"tensor": str(value.dtype).rpartition(".")[2], "aligned": value.data_ptr() % 16 == 0}
    if hasattr(value, "block_shape"):
        found = {key: [int(n) for n in getattr(value, key)] for key in ("shape", "strides", "block_shape")}
        layout = getattr(value, "layout", None)  # only Gluon's descriptors have one
        told = {} if layout is None else {"layout": {key: getattr(layout, key) for key in _LAYOUT}}
        return {"descriptor": described(value.base)["tensor"], **found, **told}
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    if type(value).__name__ == "constexpr":
        return described(value.value)
    if type(value).__name__ == "dtype" and hasattr(value, "name"):
        return {"type": value.name}
    if hasattr(value, "item"):
        return described(value.item())
    raise CannotBeSeen(f"an argument of type {type(value).__name__} cannot be described to the compiler")
