"""Compile Triton kernels for a GPU that need not be there, in a process of its own that Triton's interpreter is not in.

The process reads one request a line and writes one answer a line, both JSON; `Compiler` is the caller's side.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

__all__ = ["CannotBeSeen", "CompileFailed", "Compiler", "described"]

_LIMIT_S = 120.0
_TEXTS = ("ttir", "ttgir", "llir", "ptx")


class CompileFailed(RuntimeError):
    """The kernel does not compile; the message is the compiler's."""


class CannotBeSeen(CompileFailed):
    """Nothing is wrong with the kernel, as far as is known: it stands where this process does not reach it."""


class Compiler:
    """The process, started by the first request. Use it in a `with`, or close it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def compile(
        self, path: Path, name: str, arguments: dict[str, Any], capability: int, extras: bool = False
    ) -> dict[str, Any]:
        """`{"ttir", "ttgir", "llir", "ptx", "num_warps", "num_stages", "shared_bytes"}` of a kernel in a file.

        `arguments` are those of a launch, by name, options such as `num_warps` among them, each as `described` has it.
        With `extras` there are "cubin" (its path) and "allocated", the TTGIR with shared memory's offsets in it.

        Raises:
            CannotBeSeen: the file has no such kernel outside of all functions.
            CompileFailed: it does not compile, or the process ended.
        """
        request = {"path": str(path), "name": name, "arguments": arguments, "capability": capability, "extras": extras}
        process = self.start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            ready, _, _ = select.select([process.stdout], [], [], _LIMIT_S)
            answer = json.loads(process.stdout.readline()) if ready else {"error": f"it took more than {_LIMIT_S:g} s"}
        except (OSError, ValueError):
            answer = {"error": "the process that compiles has ended"}
        if "error" in answer:
            if answer.get("absent"):
                raise CannotBeSeen(answer["error"])
            self.close()
            raise CompileFailed(f"{name} does not compile: {answer['error']}")
        return dict(answer)

    def start(self) -> subprocess.Popen[bytes]:
        """Starts the process, if it does not run; it imports what it needs before anything is asked of it."""
        if self._process is None:
            environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
            )
        return self._process

    def close(self) -> None:
        """Ends the process; the next request would start another."""
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
    """An argument of a launch as JSON: what Triton's compiler looks at, and no data.

    Raises:
        CannotBeSeen: this kind of argument is not known here.
    """
    if hasattr(value, "data_ptr"):
        return {"tensor": str(value.dtype).rpartition(".")[2], "aligned": value.data_ptr() % 16 == 0}
    if hasattr(value, "block_shape"):
        shapes = {key: [int(n) for n in getattr(value, key)] for key in ("shape", "strides", "block_shape")}
        return {"descriptor": described(value.base)["tensor"], **shapes}
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    if type(value).__name__ == "constexpr":
        return described(value.value)
    if type(value).__name__ == "dtype" and hasattr(value, "name"):
        return {"type": value.name}
    if hasattr(value, "item"):
        return described(value.item())
    raise CannotBeSeen(f"an argument of type {type(value).__name__} cannot be described to the compiler")


class _Driver:
    """What `warmup` asks a driver, answered without one."""

    def __init__(self, capability: int) -> None:
        self.capability = capability

    def get_current_device(self) -> int:
        return self.capability  # compiled kernels are kept by device

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", self.capability, 32)


class _Tensor:
    """A tensor without data. Triton asks for its type by name and whether its address is a multiple of 16."""

    def __init__(self, dtype: str, aligned: bool) -> None:
        bits = re.search(r"\d+", dtype)
        size = int(bits[0]) // 8 if bits else 1
        self.dtype = type("dtype", (), {"__str__": lambda self: f"torch.{dtype}", "itemsize": size})()
        self._address = 0 if aligned else 4
        self.shape = [1]

    def data_ptr(self) -> int:
        return self._address

    def ptr_range(self) -> int:
        return 0

    def stride(self) -> tuple[int, ...]:
        return (1,)


def _argument(described: dict[str, Any]) -> Any:
    if "tensor" in described:
        return _Tensor(described["tensor"], described["aligned"])
    if "type" in described:
        import triton.language

        return getattr(triton.language, {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64"}
                       .get(described["type"], described["type"]))  # fmt: skip
    if "descriptor" in described:
        from triton.tools.tensor_descriptor import TensorDescriptor

        base = _Tensor(described["descriptor"], True)
        return TensorDescriptor(base, described["shape"], described["strides"], described["block_shape"])
    return described["value"]


def _modules(path: str, known: dict[str, Any]) -> Any:
    """The file as a module, imported once."""
    if path not in known:
        import importlib.util

        spec = importlib.util.spec_from_file_location(Path(path).stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[Path(path).stem] = module
        spec.loader.exec_module(module)
        known[path] = module
    return known[path]


def _kernel(module: Any, name: str) -> Any:
    kernel = getattr(module, name, None)
    while kernel is not None and hasattr(kernel, "fn"):
        if type(kernel).__name__ in ("JITFunction", "GluonJITFunction"):
            return kernel
        kernel = kernel.fn  # of autotune and heuristics: what they chose stands among the arguments
    raise CannotBeSeen(f"the file has no kernel {name!r} outside of all functions")


def _answer(request: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    from triton.runtime import driver

    driver.set_active(_Driver(request["capability"]))
    _spare(request["extras"])
    kernel = _kernel(_modules(request["path"], known), request["name"])
    arguments = {name: _argument(value) for name, value in request["arguments"].items()}
    with _without_torch():
        compiled = kernel.warmup(grid=(1,), **arguments)
    metadata = compiled.metadata
    answer = {name: compiled.asm[name] for name in _TEXTS} | {
        "num_warps": metadata.num_warps,
        "num_stages": metadata.num_stages,
        "shared_bytes": metadata.shared,
    }
    if request["extras"]:
        cubin = Path(request["path"]).with_suffix(".cubin")
        cubin.write_bytes(compiled.asm["cubin"])
        answer |= {"cubin": str(cubin), "allocated": _allocated(answer["ttgir"], request)}
    return answer


@contextlib.contextmanager
def _without_torch() -> Iterator[None]:
    """Triton asks for torch only to know its tensors, and there are none here: importing it takes a second or two."""
    absent = "torch" not in sys.modules
    if absent:
        sys.modules["torch"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        if absent:
            del sys.modules["torch"]


def _spare(extras: bool) -> None:
    """Leaves out what nobody asked for: to hash Triton's own files, which takes a second, and `ptxas`.

    What is kept on disk has a key of its own, so that no launch finds a kernel without machine code there.
    """
    import triton
    from triton.backends.nvidia.compiler import CUDABackend
    from triton.runtime import cache

    kept = f"compile_only {triton.__version__} {extras}"
    if hasattr(cache, "triton_key"):
        cache.triton_key = lambda: kept
        if not extras:
            CUDABackend.make_cubin = lambda *_: b""


def _allocated(ttgir: str, request: dict[str, Any]) -> str:
    """The TTGIR after the pass that places buffers in shared memory; "" where this Triton has no such pass."""
    from triton._C.libtriton import ir, nvidia
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia.compiler import CUDABackend

    path = Path(request["path"]).with_suffix(".ttgir")
    path.write_text(ttgir, encoding="utf-8")
    try:
        context = ir.context()
        ir.load_dialects(context)
        CUDABackend(GPUTarget("cuda", request["capability"], 32)).load_dialects(context)
        module = ir.parse_mlir_module(str(path), context)
        passes = ir.pass_manager(context)
        nvidia.passes.ttgpuir.add_allocate_shared_memory_nv(passes, request["capability"], 80)
        passes.run(module, "allocate")
    except (AttributeError, TypeError, RuntimeError):
        return ""
    return str(module)


def _said(error: BaseException) -> str:
    text = getattr(error, "error_message", None) or str(error).strip() or type(error).__name__
    return str(text).strip().splitlines()[-1][:500]


def _serve(requests: IO[str], answers: IO[str]) -> None:
    import triton  # noqa: F401

    known: dict[str, Any] = {}
    for line in requests:
        try:
            answer = _answer(json.loads(line), known)
        except CannotBeSeen as error:
            answer = {"error": str(error), "absent": True}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {_said(error)}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    own = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the file prints is no answer
    _serve(sys.stdin, own)
