"""What a notebook's machine has: a GPU, or simulators that are put in its place. Costs no import of torch."""

from __future__ import annotations

import functools
import importlib.util
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Literal

from grader.errors import GraderError
from grader.hardware import Gpu, gpus, torch_cuda

__all__ = ["device", "gpu_name", "simulate", "simulate_in_notebook"]

_EXTENSION = "torch.utils.cpp_extension"


def device() -> Literal["cuda", "cpu"]:
    """The device for a learner's tensors: "cuda" where the driver sees a GPU and the installed torch was built for one.

    torch's own answer counts where torch is imported already.
    """
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "cuda"):
        return "cuda" if torch.cuda.is_available() else "cpu"
    return "cuda" if torch_cuda() is not None and _gpus() else "cpu"


def gpu_name() -> str:
    """What the driver calls the first GPU, or an empty text."""
    return next((gpu.name for gpu in _gpus()), "")


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


@functools.cache
def _gpus() -> tuple[Gpu, ...]:
    return gpus()
