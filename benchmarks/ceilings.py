"""The ceilings of a GPU, points on its roofline, and predicted against measured times.

Rows `ceilings`, `constant_data`, `roofline` and `predictions`. The rows of `kernels` place the exercises' own kernels
on the roofline.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from benchmarks.rows import Recorder
from grader.exercises.profiling.predict_ms import large_operations, milliseconds
from grader.explore.profiling.machine_ceilings import Landed, land, measure_ceilings, time_ms
from grader.worker.harnesses.timed_work import time_on_gpu

_SIDE = 8192
_PRODUCTS = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32}
_TURNS = 16  # through the cache per launch: a single turn takes 3 µs, much of it launch overhead
_CACHED = """\
extern "C" __global__ void turns(const float4* x, float4* out, int n, int times) {
    int step = gridDim.x * blockDim.x;
    for (int turn = 0; turn < times; turn++)
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
            __stcg(out + i, __ldcg(x + (i + turn * blockDim.x) % n));  // another place each time, and never L1
}
"""
_BLOCKS_OF_SM, _THREADS = 4, 512
_SEED = 20261121  # fixes the sizes; a grading draws its own


def ceilings(recorder: Recorder) -> None:
    """Bandwidth of DRAM and L2, matrix products by type, the notebook's points, and predicted times."""
    found = measure_ceilings()
    add = partial(recorder.add, "ceilings")
    add("large copy", "bandwidth_gbps", "GB/s", found.bandwidth_gbps)
    side = _cached_side()
    add(f"copy within L2, {side} × {side}, {_TURNS} times per launch", "bandwidth_gbps", "GB/s", _cached_gbps(side))
    for name, dtype in _PRODUCTS.items():
        add(f"{name} matrix product", "tflops", "TFLOPS", _product(4096, dtype).tflops)
    for make in (torch.randn, torch.ones):  # at its power limit, a GPU multiplies ones faster
        case = f"float16 product, 8192 × 8192, torch.{make.__name__}"
        recorder.add("constant_data", case, "tflops", "TFLOPS", _product(8192, torch.float16, make).tflops)
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        add("float32 matrix product, TF32 allowed", "tflops", "TFLOPS", _product(4096, torch.float32).tflops)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
    _predictions(recorder)
    for point in _points(side):
        for metric, unit, value in (
            ("bytes", "bytes", point.bytes_moved), ("operations", "1", point.operations),
            ("median_us", "µs", 1e3 * point.ms), ("tflops", "TFLOPS", point.tflops),
        ):  # fmt: skip
            recorder.add("roofline", point.name, metric, unit, value)


def _cached_side() -> int:
    """Return the side of a square float32 matrix that fills a quarter of the L2 cache; a multiple of 4."""
    return int((torch.cuda.get_device_properties(0).L2_cache_size / 16) ** 0.5) // 4 * 4


def _cached_gbps(side: int) -> float:
    """Return the bandwidth of a kernel that copies one matrix to another repeatedly, within the L2 cache.

    Raises:
        SystemExit: it did not copy.
    """
    x, out = torch.rand(side * side, device="cuda"), torch.empty(side * side, device="cuda")
    kernel, quads = torch.cuda._compile_kernel(_CACHED, "turns"), x.numel() // 4
    blocks = _BLOCKS_OF_SM * torch.cuda.get_device_properties(0).multi_processor_count
    ms = time_ms(partial(kernel, (blocks, 1, 1), (_THREADS, 1, 1), (x, out, quads, _TURNS)))
    if not torch.equal(out, x.roll(-4 * _THREADS * (_TURNS - 1))):
        raise SystemExit("copy within L2: the output is wrong. No figure is written.")
    return _TURNS * 2 * x.nbytes / ms / 1e6


def _product(size: int, dtype: torch.dtype, make: Callable[..., torch.Tensor] = torch.randn) -> Landed:
    a, b, c = (make(size, size, device="cuda").to(dtype) for _ in range(3))
    name = f"matmul, {size} × {size}, {str(dtype).removeprefix('torch.')}"
    call = partial(torch.mm, a, b, out=c)
    return land(name, call, bytes_moved=3 * size**2 * dtype.itemsize, operations=2 * size**3)


def _points(side: int) -> list[Landed]:
    """Count a softmax as five operations per element."""
    points = [_product(size, torch.float16) for size in (256, 1024, 4096, 8192)]
    x, out = (torch.randn(_SIDE, _SIDE, device="cuda") for _ in range(2))
    s, t = (torch.randn(side, side, device="cuda") for _ in range(2))
    n = _SIDE**2
    calls: list[tuple[str, Callable[[], Any], int, int]] = [
        ("torch mean, 8192 × 8192", x.mean, 4 * n, n),
        ("torch softmax, 8192 × 8192", partial(torch.softmax, x, 1, out=out), 8 * n, 5 * n),
        (f"square within L2, {side} × {side}", partial(torch.mul, s, s, out=t), 8 * side**2, side**2),
    ]
    points += [land(name, call, bytes_moved=moved, operations=work) for name, call, moved, work in calls]
    return points


def _predictions(recorder: Recorder) -> None:
    """Add predicted over measured milliseconds, for operations that the exercise asks about, and some others."""
    here = {"bandwidth_gbps": recorder.machine.copy_gbps, "tflops": recorder.machine.peak_tflops}
    asked = large_operations(random.Random(_SEED))
    shape = [12_000, 8192]
    doubtful: list[dict[str, Any]] = [
        {"kind": "relu", "shape": [24_000, 8192], "dtype": "float16"},
        {"kind": "sum", "shape": [24_000, 8192], "dtype": "float16"},
        {"kind": "convert", "shape": shape, "dtype": "float32", "to": "float16"},
        {"kind": "convert", "shape": shape, "dtype": "float16", "to": "float32"},
        {"kind": "add_row", "shape": shape, "dtype": "float32"},
        *({"kind": "matmul", "batch": 128, "m": 1536, "n": 1536, "k": k, "dtype": "float16"} for k in (16, 32, 64)),
        *({"kind": "matmul", "batch": 1, "m": n, "n": n, "k": n, "dtype": "float16"} for n in (4096, 6144, 8192)),
    ]
    for operation in [*asked, *(each for each in doubtful if each not in asked)]:  # no case twice
        measured = time_on_gpu(operation)
        case = ", ".join(f"{key} {value}" if key != "kind" else str(value) for key, value in operation.items())
        recorder.add("predictions", case, "measured_ms", "ms", measured)
        recorder.add("predictions", case, "predicted_over_measured", "1", milliseconds(operation, here) / measured)
