"""CuPy on this machine: the real one where there is a GPU, else the stand-in that runs raw kernels on the CPU."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

__all__ = ["load_cupy"]


def load_cupy() -> ModuleType:
    """Return `cupy`, so that from then on `import cupy` gives the same; and have `nvcc` be found.

    Raises:
        RuntimeError: there is a GPU, and no CuPy.
    """
    import torch

    from grader.worker import cupy_on_cpu, nvcc_on_path

    on_gpu = torch.cuda.is_available()
    if not on_gpu:
        cupy_on_cpu.offer()
    nvcc_on_path.offer(simulated=not on_gpu)
    try:
        return import_module("cupy")
    except ImportError as error:
        raise RuntimeError(
            "This machine has a GPU, and CuPy is not installed: rm -f .venv/.lab && make lab EXTRA=gpu"
        ) from error
