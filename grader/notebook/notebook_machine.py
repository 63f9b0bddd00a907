"""The device of a notebook: a GPU, or simulators that replace it. Does not import torch."""

from __future__ import annotations

import functools
import importlib.util
import logging
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Literal

from grader.errors import GraderError
from grader.hardware import gpus, torch_cuda
from grader.notebook.cells import shell

_EXTENSION, _AUTOTUNER = "torch.utils.cpp_extension", "triton.runtime.autotuner"


def device() -> Literal["cuda", "cpu"]:
    """The device for a learner's tensors: "cuda" if the driver sees a GPU and the installed torch is built for CUDA.

    If torch is already imported, its own answer counts.
    """
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "cuda"):
        return "cuda" if torch.cuda.is_available() else "cpu"
    return "cuda" if torch_cuda() is not None and _gpus() else "cpu"


def gpu_name() -> str:
    """The driver's name for the first GPU, or an empty text."""
    return next((gpu.name for gpu in _gpus()), "")


def simulate_in_notebook() -> None:
    """Calls `simulate()` if this process is a notebook's kernel on a machine without a GPU."""
    if not hasattr(shell(), "kernel") or device() == "cuda":
        return
    try:
        simulate()
    except GraderError as error:
        warnings.warn(f"{error} Restart the kernel and import grader first.", stacklevel=3)


def simulate() -> None:
    """Makes this process run kernels without a GPU: Triton interpreted, CUDA C++ built for the CPU.

    Raises:
        GraderError: triton was imported already, as a compiler.
    """
    from grader.worker.simulator import start

    start.prepare()
    # A torch that is built for CUDA says so where it finds `nvcc` and no driver.
    logging.getLogger(_EXTENSION).addFilter(lambda record: "No CUDA runtime is found" not in str(record.msg))
    for name, patch in ((_EXTENSION, start.install), (_AUTOTUNER, start.take_first)):
        if name in sys.modules:
            patch()
        elif not any(isinstance(finder, _AfterImport) and finder.name == name for finder in sys.meta_path):
            sys.meta_path.insert(0, _AfterImport(name, patch))


class _AfterImport(MetaPathFinder):
    """Patches a module only when it is imported, because importing torch takes seconds."""

    def __init__(self, name: str, patch: Callable[[], None]) -> None:
        self.name, self._patch = name, patch

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_patch(module: ModuleType) -> None:
                load(module)
                self._patch()

            spec.loader.exec_module = load_and_patch  # type: ignore[method-assign]
        return spec


_gpus = functools.cache(gpus)
