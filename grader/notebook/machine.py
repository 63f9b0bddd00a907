"""What a notebook's machine has: a GPU, or simulators that are put in its place. Costs no import of torch."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Literal

from grader.errors import GraderError

__all__ = ["device", "gpu_name", "simulate", "simulate_in_notebook"]

_EXTENSION = "torch.utils.cpp_extension"


def device() -> Literal["cuda", "cpu"]:
    """The device for a learner's tensors: "cuda" where the driver sees a GPU and the installed torch was built for one.

    torch's own answer counts where torch is imported already.
    """
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "cuda"):
        return "cuda" if torch.cuda.is_available() else "cpu"
    return "cuda" if _torch_was_built_for_cuda() and _gpus() > 0 else "cpu"


def gpu_name() -> str:
    """What the driver calls the first GPU, or an empty text."""
    handle, name = ctypes.c_void_p(), ctypes.create_string_buffer(96)
    with suppress(OSError, AttributeError):
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        if nvml.nvmlInit_v2() == 0:
            nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle))
            nvml.nvmlDeviceGetName(handle, name, len(name))
            nvml.nvmlShutdown()
    return name.value.decode("utf-8", "replace")


def simulate_in_notebook() -> None:
    """`simulate()` where this process is a notebook's kernel and there is no GPU; else nothing."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or not hasattr(shell, "kernel") or device() == "cuda":
        return
    try:
        simulate()
    except GraderError as error:
        warnings.warn(f"{error} Restart the kernel and import grader first.", stacklevel=3)


def simulate() -> None:
    """Has kernels of this process run without a GPU: Triton interpreted, CUDA C++ built for the CPU.

    Raises:
        GraderError: triton was imported already, as a compiler.
    """
    from grader.worker import simulator

    simulator.prepare()
    if _EXTENSION in sys.modules:
        simulator.install()
    elif not any(isinstance(finder, _AfterImport) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AfterImport())


class _AfterImport(MetaPathFinder):
    """Patches `load_inline` when its module is imported, and not before: importing torch takes seconds."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != _EXTENSION:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Patching(spec.loader)
        return spec


class _Patching(Loader):
    """A loader that has the simulator installed once its module is there."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        from grader.worker import simulator

        self._loader.exec_module(module)
        simulator.install()


def _torch_was_built_for_cuda() -> bool:
    """Read from torch's version file, without importing torch."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return False
    with suppress(OSError):
        text = (Path(spec.origin).parent / "version.py").read_text(encoding="utf-8")
        return re.search(r"^cuda\b.*=\s*['\"]\d", text, re.MULTILINE) is not None
    return False


def _gpus() -> int:
    """How many GPUs the driver shows to this process. NVML is asked, so that no CUDA context is made."""
    if os.environ.get("CUDA_VISIBLE_DEVICES", "all").strip() in ("", "-1", "none", "NoDevFiles"):
        return 0
    number = ctypes.c_uint(0)
    with suppress(OSError, AttributeError):
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        if nvml.nvmlInit_v2() == 0:
            nvml.nvmlDeviceGetCount_v2(ctypes.byref(number))
            nvml.nvmlShutdown()
            return number.value
    with suppress(OSError, AttributeError):
        cuda = ctypes.CDLL("libcuda.so.1")
        if cuda.cuInit(0) == 0:
            cuda.cuDeviceGetCount(ctypes.byref(number))
    return number.value
