"""Numba's CUDA target on this machine: the GPU where there is one, else Numba's own simulator."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from types import ModuleType

__all__ = ["load_numba_cuda"]


def load_numba_cuda() -> ModuleType:
    """Return `numba.cuda`, on the simulator where the GPU or the package `numba-cuda` is missing.

    Numba reads this choice when it is imported, so call this before anything imports `numba`.
    """
    if "numba" not in sys.modules:
        os.environ.setdefault("NUMBA_ENABLE_CUDASIM", "0" if _has_gpu() else "1")
        # A kernel of ten threads leaves a GPU idle on purpose here; the warning would only distract.
        os.environ.setdefault("NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS", "0")
    from grader.worker.newer_numpy import give_numba_its_names

    give_numba_its_names()
    return import_module("numba.cuda")


def _has_gpu() -> bool:
    from importlib.util import find_spec

    import torch

    return torch.cuda.is_available() and find_spec("numba_cuda") is not None
