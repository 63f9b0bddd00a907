"""The rungs of a reduction: bandwidth compared with reading alone, error far from 0, and repeatability."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable
from dataclasses import astuple
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.utils.cpp_extension import load_inline

from benchmarks.kernels import load
from benchmarks.rows import Recorder
from benchmarks.timing import in_turn
from grader.exercises import find
from grader.explore.reductions import TIMED, launch
from grader.judge.score import Interval, interval

_ELEMENTS = 1 << 28  # 1 GiB: many times the L2
_REPEATS = 20
_RESULTS = 50
_SUMMED = 1 << 24  # for errors and repeats
_BLOCKS_OF_SM = (1 / 8, 1 / 2, 1, 2, 4, 8, 16, 64)
_REFERENCE = "float4, shuffles, last block"
_READ = """
__global__ void read_kernel(const float4* __restrict__ x, float* out, int quads) {
    int step = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (; i + 3 * step < quads; i += 4 * step) {
        float4 a = x[i], b = x[i + step], c = x[i + 2 * step], d = x[i + 3 * step];
        sum += a.x + a.y + a.z + a.w + b.x + b.y + b.z + b.w + c.x + c.y + c.z + c.w + d.x + d.y + d.z + d.w;
    }
    for (; i < quads; i += step) sum += x[i].x + x[i].y + x[i].z + x[i].w;
    if (sum == 12345.678f) *out = sum;  // hardly ever: only the reading is timed
}
extern "C" void read_all(const float4* x, float* out, int quads, int blocks, int threads) {
    read_kernel<<<blocks, threads>>>(x, out, quads);
}
"""

Launch = Callable[[torch.Tensor, torch.Tensor], Any]


def reductions(recorder: Recorder) -> None:
    """Rows `reductions`, one case per rung, the reference solution, torch.mean and reading; `reductions/blocks`."""
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    x, out = torch.randn(_ELEMENTS, device="cuda"), torch.zeros(1, device="cuda")
    read = _best_read(x, out, sms)
    recorder.add("reductions", "reading alone", "bandwidth_gbps", "GB/s", *_gbps(read))
    recorder.add("reductions", "reading alone", "share_of_read", "1", 1.0)
    with tempfile.TemporaryDirectory() as folder:
        reference = load(find("mean_cuda"), Path(folder))
        peers = _peers(reference, sms)
        for name, peer in peers.items():
            _speed(recorder, name, peer, x, out, read)
        far = torch.randn(_SUMMED, device="cuda") + 10_000  # the same for all, so that errors are comparable
        for name, peer in peers.items():
            _quality(recorder, name, peer, far, out)
        _over_blocks(recorder, reference, sms, x, out, read)


def _peers(reference: Callable[..., Any], sms: int) -> dict[str, Launch]:
    scratch = torch.empty(8 * sms, device="cuda")
    rungs: dict[str, Launch] = {name: partial(_rung, name, scratch) for name in TIMED}
    return rungs | {_REFERENCE: reference, "torch.mean": _torch_mean}


def _rung(name: str, scratch: torch.Tensor, x: torch.Tensor, out: torch.Tensor) -> None:
    if name != "grid-stride":
        out.zero_()  # the sum starts at 0, which is part of the method and of its time
    launch(name, x, out, scratch, scratch.numel())


def _torch_mean(x: torch.Tensor, out: torch.Tensor) -> None:
    torch.mean(x, 0, keepdim=True, out=out)


def _times(call: Callable[[], Any]) -> Interval:
    """Return a call's microseconds, median and interval, with the L2 flushed before each call."""
    return interval(in_turn({"": call}, repeats=_REPEATS)[""])


def _gbps(times: Interval) -> tuple[float, float, float]:
    median_us, low_us, high_us = astuple(times)
    return tuple(4 * _ELEMENTS / us / 1e3 for us in (median_us, high_us, low_us))


def _best_read(x: torch.Tensor, out: torch.Tensor, sms: int) -> Interval:
    """Return the fastest of some ways to read. A kernel that uses its data should not be faster."""
    path = load_inline("read_alone", "", _READ, no_implicit_headers=True, is_python_module=False)
    read = ctypes.CDLL(path).read_all
    read.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_int]
    quads = x.numel() // 4
    ways = [
        (blocks * sms, threads) for blocks, threads in ((4, 256), (8, 256), (32, 256), (2, 512), (4, 512), (2, 1024))
    ]
    found = [_times(partial(read, x.data_ptr(), out.data_ptr(), quads, *way)) for way in ways]
    return min(found, key=lambda times: times.middle)


def _speed(recorder: Recorder, name: str, peer: Launch, x: torch.Tensor, out: torch.Tensor, read: Interval) -> None:
    times = _times(partial(peer, x, out))
    if not torch.allclose(out, x.double().mean().float(), atol=1e-5):
        raise SystemExit(f"The rung {name} is wrong. No figure is written.")
    recorder.add("reductions", name, "median_us", "µs", *astuple(times))
    recorder.add("reductions", name, "bandwidth_gbps", "GB/s", *_gbps(times))
    recorder.add("reductions", name, "share_of_read", "1", read.middle / times.middle)


def _quality(recorder: Recorder, name: str, peer: Launch, x: torch.Tensor, out: torch.Tensor) -> None:
    """Add the median error on numbers around 10,000, in ppb, and the number of different results on the same data."""
    exact, results = x.double().mean().item(), []
    for _ in range(_RESULTS):
        peer(x, out)
        results.append(out.item())
    errors = sorted(abs(result - exact) / exact * 1e9 for result in results)
    recorder.add("reductions", name, "error_ppb", "ppb", errors[len(errors) // 2], errors[0], errors[-1])
    recorder.add("reductions", name, "different_results", "of 50", len(set(results)))


def _over_blocks(
    recorder: Recorder, reference: Any, sms: int, x: torch.Tensor, out: torch.Tensor, read: Interval
) -> None:
    """Time the grid-stride rung and the reference solution's kernel with different numbers of blocks."""
    mean = reference.__globals__["library"]().mean
    for share in _BLOCKS_OF_SM:
        blocks = max(1, round(share * sms))
        case = f"{blocks:,} blocks, {share:g} for each SM"
        scratch = torch.empty(blocks, device="cuda")
        by_float = _times(partial(_rung, "grid-stride", scratch, x, out))
        recorder.add("reductions/blocks", case, "share_of_read_by_float", "1", read.middle / by_float.middle)
        if blocks <= 4096:  # the reference solution keeps at most so many sums
            by_float4 = _times(partial(mean, x.data_ptr(), out.data_ptr(), x.numel(), blocks))
            recorder.add("reductions/blocks", case, "share_of_read_by_float4", "1", read.middle / by_float4.middle)
