"""Start a worker on a GPU: imports, the CUDA context, and the slow first use of Triton and of the profiler."""

from __future__ import annotations

import os

import torch
import triton
import triton.language as tl

from grader.worker.call_profile import ran
from grader.worker.toolchain import nvcc
from grader.worker.toolchain.compiler_errors import install_line_marks


def give_numba_its_names() -> None:
    """Add `numpy.row_stack`, which NumPy 2.5 removed and numba-cuda 0.30 looks up when it first compiles."""
    import numpy

    if not hasattr(numpy, "row_stack"):
        numpy.row_stack = numpy.vstack  # type: ignore[attr-defined,unused-ignore]


give_numba_its_names()


@triton.jit  # type: ignore[untyped-decorator]
def _fill(out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.sum(tl.exp(at.to(tl.float32))), mask=at < n)


def start(one_queue: bool) -> None:
    """Make the CUDA context, and no other work on the GPU.

    With `one_queue` the GPU executes work from all streams in the order of the calls. With several queues, the default,
    it may stay with a stream that waits for an event, and get to one that waits for the flag 2 ms later.
    """
    if one_queue:
        os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = "1"  # the driver reads it when the context is made
    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    major, minor = torch.cuda.get_device_capability()
    os.environ.setdefault("TORCH_CUDA_ARCH_LIST", f"{major}.{minor}")  # half the build time
    nvcc.offer(simulated=False)


def finish() -> None:
    """Wait for all of this process's work on the GPU."""
    torch.cuda.synchronize()


def warm(profiler: bool) -> None:
    """Let Triton build its driver stub and compile a kernel, about 1 s; with `profiler` start CUPTI, about 3 s.

    Once CUPTI is started, each launch takes 1.6 µs longer on the host, so do not start it to compare small kernels.
    """
    _fill.warmup(torch.float32, 64, BLOCK=64, grid=(1,))
    install_line_marks()
    if profiler:
        ran(lambda: None)
