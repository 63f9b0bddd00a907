"""Microseconds that the host needs to launch one small kernel, in several languages: rows `launches`, `host_us`.

Each way adds the same two vectors. The kernel takes less time than its launch, so the host never waits for the GPU.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import quantiles
from typing import Any

import torch
import triton
import triton.language as tl

from benchmarks.rows import Recorder
from grader.worker.gpu_start import give_numba_its_names

_ELEMENTS, _THREADS = 4096, 256
_BATCHES, _CALLS = 50, 200  # calls per batch: fewer than a GPU can queue
_SOURCE = """\
extern "C" __global__ void add(const float* x, const float* y, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] + y[i];
}
"""


@triton.jit  # type: ignore[untyped-decorator]
def _add_triton(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


def launches(recorder: Recorder) -> None:
    """Record the median with the quartiles. An output that is wrong ends the bench."""
    x, y = (torch.randn(_ELEMENTS, device="cuda") for _ in range(2))
    expected = x + y
    for case, (call, out) in _ways(x, y).items():
        call()
        torch.cuda.synchronize()
        if not torch.equal(out, expected):
            raise SystemExit(f"{case}: the output is wrong. No figure is written.")
        low, middle, high = quantiles(_host_us(call), n=4)
        recorder.add("launches", case, "host_us", "µs", middle, low, high)


def _ways(x: torch.Tensor, y: torch.Tensor) -> dict[str, tuple[Callable[[], Any], torch.Tensor]]:
    """Return a call and its output for each way."""
    import cupy  # here, because a machine without a GPU may have neither
    import numba

    give_numba_its_names()
    from numba import cuda

    @cuda.jit  # type: ignore[untyped-decorator]
    def kernel(x, y, out, n):  # type: ignore[no-untyped-def]
        i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        if i < n:
            out[i] = x[i] + y[i]

    numba.config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # small grids are the point
    blocks = _ELEMENTS // _THREADS
    outs = [torch.empty_like(x) for _ in range(5)]
    arrays = [cuda.as_cuda_array(tensor) for tensor in (x, y, outs[2])]
    raw = cupy.RawKernel(_SOURCE, "add")
    views = [cupy.asarray(tensor) for tensor in (x, y, outs[4])]
    return {
        "torch.add": (partial(torch.add, x, y, out=outs[0]), outs[0]),
        "Triton": (lambda: _add_triton[(blocks,)](x, y, outs[1], _ELEMENTS, BLOCK=_THREADS), outs[1]),
        "Numba, arrays of Numba": (lambda: kernel[blocks, _THREADS](*arrays, _ELEMENTS), outs[2]),
        "Numba, tensors of PyTorch": (lambda: kernel[blocks, _THREADS](x, y, outs[3], _ELEMENTS), outs[3]),
        "CuPy, RawKernel": (lambda: raw((blocks,), (_THREADS,), (*views, cupy.int32(_ELEMENTS))), outs[4]),
    }


def _host_us(call: Callable[[], Any]) -> list[float]:
    """Return the microseconds per call until the call returned, one value per batch."""
    found = []
    for _ in range(_BATCHES):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(_CALLS):
            call()
        found.append(1e6 * (time.perf_counter() - start) / _CALLS)
    return found
