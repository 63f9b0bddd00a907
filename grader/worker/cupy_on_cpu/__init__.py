"""A stand-in for CuPy on a machine without a GPU: raw kernels run on the CPU, arrays are NumPy's.

`offer()` has `import cupy` find it. Kernels go through `cuda_on_cpu`, so what that reports is reported here as well.
What the CUDA driver does to arguments is done here: it copies as many bytes as the parameter has, whatever they mean.
Not simulated: time, streams that overlap, textures, CuPy's own kernels beyond what NumPy has, and `cupyx`.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType

__all__ = ["PARTS", "offer"]

PARTS = (
    "cupy.cuda", "cupy.cuda.runtime", "cupy.cuda.driver", "cupy.cuda.compiler", "cupy.cuda.function", "cupy.cuda.nvtx",
    "cupy.fft", "cupy.linalg", "cupy.random",
)  # fmt: skip


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `cupy` and its parts, before a CuPy that is installed and has no GPU."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        known = fullname == "cupy" or fullname in PARTS
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True) if known else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        from grader.worker.cupy_on_cpu.namespace import module

        return module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is left to do."""


def offer() -> None:
    """Has `import cupy` find the stand-in, in this process. A second call does nothing."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
