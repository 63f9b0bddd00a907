"""The GPU that notebooks run on, or its replacement: a pretend GPU, simulated CuPy, or Numba's simulator."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

_PRETEND = """\
A pretend GPU, since torch finds no real one here. It follows the rules of a real one, at a
snail's pace: a launch returns at once, kernels wait in a queue, torch.cuda.synchronize() and
torch.cuda.Event work. It computes nothing, and its kernel times are made up."""
_BUSY = r"""
extern "C" __global__ void busy(float* x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = x[i];
    for (int round = 0; round < ROUNDS; round++) value = value * 0.999f + 0.001f;
    x[i] = value;
}
"""
_BUSY_THREADS = 1 << 22


@dataclass(frozen=True)
class BusyGpu:
    """A GPU to time: its name, and whether it is the pretend one."""

    name: str
    pretend: bool

    def __repr__(self) -> str:
        return self.name

    def call(self) -> Callable[[], None]:
        """Return a new function that keeps the GPU busy for a few ms. Its first call is slow: it compiles the kernel.

        On the pretend GPU the first call only waits.
        """
        return _pretend_call() if self.pretend else _real_call()


def busy_gpu() -> BusyGpu:
    """Return this machine's GPU. If there is none, a pretend GPU replaces it in this process's `torch.cuda`."""
    import torch

    if torch.cuda.is_available():
        return BusyGpu(torch.cuda.get_device_name(), False)
    from grader.worker.simulator import virtual_gpu

    virtual_gpu.install()
    return BusyGpu(_PRETEND, True)


def _pretend_call() -> Callable[[], None]:
    from grader.worker.harnesses.timed_work import callable_of

    return callable_of({"first_ms": random.uniform(150, 250), "virtual": [[random.uniform(400, 600), 50]]})


def _real_call() -> Callable[[], None]:
    import torch

    made: list[Any] = []
    rounds = random.randrange(30_000, 50_000)

    def function() -> None:
        if not made:
            source = _BUSY.strip().replace("ROUNDS", str(rounds))  # unique, so that no cached kernel is used
            made.extend((torch.cuda._compile_kernel(source, "busy"), torch.zeros(_BUSY_THREADS, device="cuda")))
        kernel, x = made
        kernel((_BUSY_THREADS // 256, 1, 1), (256, 1, 1), (x,))

    return function


def load_cupy() -> ModuleType:
    """Return `cupy`, so that a later `import cupy` gives the same module, and put `nvcc` on the path.

    Raises:
        RuntimeError: there is a GPU but CuPy is not installed.
    """
    import torch

    from grader.worker.simulator import cupy_module
    from grader.worker.toolchain import nvcc

    on_gpu = torch.cuda.is_available()
    if not on_gpu:
        cupy_module.offer()
    nvcc.offer(simulated=not on_gpu)
    try:
        return import_module("cupy")
    except ImportError as error:
        raise RuntimeError(
            "This machine has a GPU but CuPy is not installed. Run: rm -f .venv/.lab && make lab EXTRA=gpu"
        ) from error


def load_numba_cuda() -> ModuleType:
    """Return `numba.cuda`, using the simulator if the GPU or the package `numba-cuda` is missing.

    Numba reads this setting when it is imported, so call this before importing `numba`.
    """
    if "numba" not in sys.modules:
        import torch

        on_gpu = torch.cuda.is_available() and find_spec("numba_cuda") is not None
        os.environ.setdefault("NUMBA_ENABLE_CUDASIM", "0" if on_gpu else "1")
        # The course launches kernels with ten threads on purpose; the warning would only distract.
        os.environ.setdefault("NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS", "0")
    from grader.worker.gpu_start import give_numba_its_names

    give_numba_its_names()
    return import_module("numba.cuda")
