"""The process that `compile_only` starts: compile Triton kernels without a GPU.

It is run as a script and imports nothing from this package. Each request and each answer is one line of JSON;
`compile_only.Compiler` describes them.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import IO, Any

_MULTIPROCESSORS = 132
_PROPERTIES = {
    "multiprocessor_count": _MULTIPROCESSORS,
    "max_shared_mem": 232_448,
    "max_num_regs": 65_536,
    "warpSize": 32,
}
_TEXTS = ("ttir", "ttgir", "llir", "ptx")
_INLINE = re.compile(r"// begin inline asm\n.*?// end inline asm", re.DOTALL)
_LINE = re.compile(r"^[ \t]*\.loc\b.*\n", re.MULTILINE)


class _Absent(Exception):
    """The file has no such kernel."""


class _Driver:
    """The part of a driver that `warmup` uses, without a GPU."""

    def __init__(self, capability: int) -> None:
        self.capability = capability

    def get_current_device(self) -> int:
        return self.capability  # Triton keeps compiled kernels per device

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> Any:
        return _target(self.capability)

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cuda", 0)

    @property
    def utils(self) -> Any:
        return SimpleNamespace(get_device_properties=lambda device=None: _PROPERTIES)


def _answer_for_a_gpu() -> None:
    """Let torch answer what a file may ask of a GPU while it is imported."""
    import torch

    cuda: Any = torch.cuda
    cuda.current_device = lambda: 0
    cuda.get_device_properties = lambda device=None: SimpleNamespace(multi_processor_count=_MULTIPROCESSORS)


def _target(capability: int) -> Any:
    from triton.backends.compiler import GPUTarget

    return GPUTarget("cuda", capability, 32)


@functools.cache
def _dtype(name: str) -> Any:
    """Return one object per type: Triton 3.6 caches types by address, which a new object may reuse."""
    bits = re.search(r"\d+", name)
    size = int(bits[0]) // 8 if bits else 1
    return type("dtype", (), {"__str__": lambda self: f"torch.{name}", "itemsize": size})()


class _Tensor:
    """A tensor without data. Triton reads the name of its type, and whether its address is a multiple of 16."""

    def __init__(self, dtype: str, aligned: bool) -> None:
        self.dtype = _dtype(dtype)
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
        base = _Tensor(described["descriptor"], True)
        sizes = (described["shape"], described["strides"], described["block_shape"])
        if "layout" in described:
            from triton.experimental.gluon.language import NVMMASharedLayout
            from triton.experimental.gluon.nvidia import hopper

            return hopper.TensorDescriptor(base, *sizes, NVMMASharedLayout(**described["layout"]))
        from triton.tools.tensor_descriptor import TensorDescriptor

        return TensorDescriptor(base, *sizes)
    return described["value"]


def _modules(path: str, known: dict[str, Any]) -> Any:
    """Import the file, once. _Absent: it needs a GPU for that."""
    if path not in known:
        import importlib.util

        spec = importlib.util.spec_from_file_location(Path(path).stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[Path(path).stem] = module
        if "torch.cuda." in Path(path).read_text(encoding="utf-8"):
            _answer_for_a_gpu()
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            raise _Absent(
                f"the file cannot be imported without a GPU ({type(error).__name__}: {_said(error)})"
            ) from error
        known[path] = module
    return known[path]


def _kernel(module: Any, name: str) -> Any:
    kernel = getattr(module, name, None)
    while kernel is not None and hasattr(kernel, "fn"):
        if type(kernel).__name__ in ("JITFunction", "GluonJITFunction"):
            return kernel
        kernel = kernel.fn  # the choices of autotune and heuristics are among the arguments
    raise _Absent(f"the file has no kernel {name!r} at module level")


def _answer(request: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    from triton.runtime import driver

    driver.set_active(_Driver(request["capability"]))
    _spare(request["extras"])
    if "ttgir" in request:
        return {"ptx": _lowered(request["ttgir"], request["capability"])}
    kernel = _kernel(_modules(request["path"], known), request["name"])
    arguments = {name: _argument(value) for name, value in request["arguments"].items()}
    with _without_torch():
        compiled = kernel.warmup(grid=(1,), **arguments)
    metadata = compiled.metadata
    answer = {name: compiled.asm.get(name, "") for name in _TEXTS} | {  # Gluon has no Triton IR
        "num_warps": metadata.num_warps,
        "num_stages": metadata.num_stages,
        "shared_bytes": metadata.shared,
    }
    if request["extras"]:
        cubin = Path(request["path"]).with_suffix(".cubin")
        cubin.write_bytes(compiled.asm["cubin"])
        answer |= {"cubin": str(cubin), "allocated": _allocated(answer["ttgir"], request)}
    return answer


def _lowered(ttgir: str, capability: int) -> str:
    import triton

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.ttgir")
        path.write_text(ttgir, encoding="utf-8")
        return str(triton.compile(str(path), target=_target(capability)).asm["ptx"])


class _TorchTensor:
    """No value has this type."""


@contextlib.contextmanager
def _without_torch() -> Iterator[None]:
    """Keep Triton from importing torch, which takes 1 to 2 s: it only needs torch to recognise tensors.

    Triton 3.9 looks for `Tensor` in the module that it finds, and accepts no None in its place.
    """
    absent = "torch" not in sys.modules
    if absent:
        sys.modules["torch"] = ModuleType("torch")
        vars(sys.modules["torch"])["Tensor"] = _TorchTensor
    try:
        yield
    finally:
        if absent:
            del sys.modules["torch"]


def _spare(extras: bool) -> None:
    """Skip hashing Triton's own files, which takes 1 s, and `ptxas` unless there are `extras`.

    The cache on disk gets a separate key, so that no launch finds a kernel without machine code.
    """
    import triton
    from triton.backends.nvidia.compiler import CUDABackend
    from triton.runtime import cache

    kept = f"compile_only {triton.__version__} {extras}"
    if hasattr(cache, "triton_key"):
        cache.triton_key = lambda: kept
        if not extras:
            CUDABackend.make_cubin = lambda *_: b""
        _keep_lines_of_calls(CUDABackend)


@functools.cache
def _keep_lines_of_calls(backend: Any) -> None:
    """Give all of an inline assembly the line of its call. Triton 3.9 counts the lines of its text, too."""
    make_ptx = backend.make_ptx
    backend.make_ptx = lambda *given: _INLINE.sub(_with_first_line, make_ptx(*given))


def _with_first_line(inline: re.Match[str]) -> str:
    first, *others = _LINE.split(inline[0])
    return first + "".join(_LINE.findall(inline[0])[:1]) + "".join(others)


def _allocated(ttgir: str, request: dict[str, Any]) -> str:
    """Return the TTGIR after the pass that places buffers in shared memory, or "" if this Triton has no such pass."""
    from triton._C.libtriton import ir, nvidia
    from triton.backends.nvidia.compiler import CUDABackend

    path = Path(request["path"]).with_suffix(".ttgir")
    path.write_text(ttgir, encoding="utf-8")
    try:
        context = ir.context()
        ir.load_dialects(context)
        CUDABackend(_target(request["capability"])).load_dialects(context)
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
        except _Absent as error:
            answer = {"error": str(error), "absent": True}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {_said(error)}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    own = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # keep the file's prints out of the answers
    _serve(sys.stdin, own)
