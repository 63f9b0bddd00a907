"""The worker's start on a GPU: imports, the CUDA context, Triton's and the profiler's first use, lines in errors."""

from __future__ import annotations

import os

import torch
import triton
import triton.language as tl

from grader.worker.harnesses.compiled_graph import ran
from grader.worker.toolchain import nvcc
from grader.worker.toolchain.compiler_errors import install_line_marks

# What numba-cuda asks NumPy for, and NumPy 2.5 has no more: a GPU machine may have one that is not ours to choose.


def give_numba_its_names() -> None:
    """`numpy.row_stack` is gone since NumPy 2.5; numba-cuda 0.30 looks it up when it first compiles."""
    import numpy

    if not hasattr(numpy, "row_stack"):
        numpy.row_stack = numpy.vstack  # type: ignore[attr-defined,unused-ignore]


# The worker's start on a GPU: imports, the CUDA context, Triton's and the profiler's first use, lines in errors.

give_numba_its_names()


@triton.jit  # type: ignore[untyped-decorator]
def _fill(out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.sum(tl.exp(at.to(tl.float32))), mask=at < n)


def start(one_queue: bool) -> None:
    """Makes the context: all that is work on the GPU.

    With `one_queue` the GPU takes what is put on any stream in the order of the calls. With several, which is the rule,
    it may sit on a stream that waits for an event, and come to one that waits for the flag 2 ms later.
    """
    if one_queue:
        os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = "1"  # which the driver reads when the context is made
    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    major, minor = torch.cuda.get_device_capability()
    os.environ.setdefault("TORCH_CUDA_ARCH_LIST", f"{major}.{minor}")  # one architecture: half the build
    nvcc.offer(simulated=False)


def warm(profiler: bool) -> None:
    """Has Triton build its driver stub and compile a kernel, about a second; and has CUPTI start, about three.

    CUPTI, once started, adds 1.6 µs to each launch on the host's side: not where small kernels are compared.
    """
    _fill.warmup(torch.float32, 64, BLOCK=64, grid=(1,))
    install_line_marks()
    if profiler:
        ran(lambda: None)
