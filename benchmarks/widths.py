"""A Triton copy kernel with loads and stores of 4, 8 or 16 bytes, otherwise the same; and `widen`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import astuple
from functools import partial
from pathlib import Path
from typing import Any

import torch
import triton
import triton.language as tl

from benchmarks.kernels import load
from benchmarks.rows import Recorder
from benchmarks.timing import in_turn
from grader.exercises import find
from grader.judge.score import Interval, interval
from grader.worker.harnesses.triton_kernels import load_widths

_ELEMENTS = (1 << 27) + 4  # not a multiple of 16: Triton would see that, and every mask would end at a whole load
_RUNS = (1, 2, 4)  # float32 per load
_EACH = (8, 32)  # elements per thread
_THREADS = 128
_ROWS, _COLUMNS, _PADDING = 8192, 4092, (8, 16)


@triton.jit  # type: ignore[untyped-decorator]
def _copy_kernel(x_ptr, out_ptr, n, RUN: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = tl.max_constancy(i < n, RUN)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask), mask=mask)


def widths(recorder: Recorder) -> None:
    """Rows `widths`, one case per width and number of elements per thread; `widths/order`, narrow against wide."""
    _copies(recorder)
    _orders(recorder)


def _copies(recorder: Recorder) -> None:
    x, out = torch.randn(_ELEMENTS, device="cuda"), torch.empty(_ELEMENTS, device="cuda")
    peers: dict[str, Callable[[], Any]] = {"torch's copy": partial(out.copy_, x)}
    for each in _EACH:
        for run in _RUNS:
            call = partial(_copy, x, out, run, each * _THREADS)
            _must_be(call, x, out, 4 * run)
            peers[f"{4 * run} bytes, {each} elements per thread"] = call
    for case, times in in_turn(peers).items():
        found = interval(times)
        recorder.add("widths", case, "median_us", "µs", *astuple(found))
        recorder.add("widths", case, "bandwidth_gbps", "GB/s", *_gbps(found, 8 * _ELEMENTS))
        recorder.add("widths", case, "share_of_copy", "1", _gbps(found, 8 * _ELEMENTS)[0] / recorder.machine.copy_gbps)


def _copy(x: torch.Tensor, out: torch.Tensor, run: int, block: int) -> Any:
    return _copy_kernel[(triton.cdiv(_ELEMENTS, block),)](x, out, _ELEMENTS, RUN=run, BLOCK=block, num_warps=4)


def _must_be(call: Callable[[], Any], x: torch.Tensor, out: torch.Tensor, wide_bytes: int) -> None:
    """Raise SystemExit unless the copy is right and all its loads have this width."""
    out.zero_()
    found = load_widths(call().asm["ptx"])
    if set(found) != {wide_bytes} or not torch.equal(x, out):
        raise SystemExit(f"A copy with loads of {wide_bytes} bytes is wrong, or its loads are {dict(found)}.")


def _gbps(times: Interval, moved: int) -> tuple[float, float, float]:
    median_us, low_us, high_us = astuple(times)
    return tuple(moved / us / 1e3 for us in (median_us, high_us, low_us))


def _orders(recorder: Recorder) -> None:
    """Time the given kernel of `widen` and the reference solution, on rows padded as in the judge."""
    exercise = find("widen")
    left, right = (_COLUMNS + padding for padding in _PADDING)
    x = torch.randn(_ROWS, left, device="cuda")[:, :_COLUMNS]
    out = torch.empty(_ROWS, right, device="cuda")[:, :_COLUMNS]
    gain = torch.randn(_ROWS, device="cuda")
    with tempfile.TemporaryDirectory() as folder:
        peers = {
            "the narrow kernel": partial(exercise.baseline("given").function, x, gain, out),
            "torch.mul": partial(exercise.baseline("torch").function, x, gain, out),
            "the wide kernel": partial(load(exercise, Path(folder)), x, gain, out),
        }
        found = {case: interval(times) for case, times in in_turn(peers).items()}
    narrow = found["the narrow kernel"].middle
    for case, times in found.items():
        recorder.add("widths/order", case, "median_us", "µs", *astuple(times))
        recorder.add("widths/order", case, "bandwidth_gbps", "GB/s", *_gbps(times, 8 * _ROWS * _COLUMNS))
        recorder.add("widths/order", case, "ratio_vs_narrow", "1", narrow / times.middle)
