"""The mean in Triton against `torch.mean` and other ways, over sizes, and over grid, block and warps."""

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
from grader.judge.checking.compare import within
from grader.judge.score import interval

_SIZES = tuple(1 << power for power in range(22, 29))
_LARGE = 1 << 26
_RESULTS = 50
_SHAPES = tuple(
    (per_sm, block, warps)
    for per_sm in (1, 2, 4, 8, 16)
    for block in (1024, 4096, 8192, 16384)
    for warps in (4, 8, 16)
    if block // (32 * warps) <= 64  # more sums do not fit in the registers of a thread
)
_REFERENCE, _TORCH = "two launches (the authors' solution)", "torch.mean"

Launch = Callable[[Any, Any], Any]


@triton.jit  # type: ignore[untyped-decorator]
def element_kernel(x_ptr, sums_ptr, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """The kernel that circulates online, as the notebook shows it."""
    first = tl.program_id(0) * BLOCK
    total = 0.0
    for i in range(first, tl.minimum(first + BLOCK, n)):
        total += tl.load(x_ptr + i)
    tl.store(sums_ptr + tl.program_id(0), total / n)


@triton.jit  # type: ignore[untyped-decorator]
def _atomic_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    lane = tl.arange(0, BLOCK)
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        sums += tl.load(x_ptr + start + lane, mask=start + lane < n, other=0.0)
    tl.atomic_add(out_ptr, tl.sum(sums, axis=0) / n)


@triton.jit  # type: ignore[untyped-decorator]
def _ticket_kernel(x_ptr, out_ptr, sums_ptr, ticket_ptr, n, BLOCK: tl.constexpr, MOST: tl.constexpr):  # type: ignore[no-untyped-def]
    lane = tl.arange(0, BLOCK)
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        sums += tl.load(x_ptr + start + lane, mask=start + lane < n, other=0.0)
    tl.store(sums_ptr + tl.program_id(0), tl.sum(sums, axis=0))
    tl.debug_barrier()  # store the sum before taking a ticket
    if tl.atomic_add(ticket_ptr, 1, sem="acq_rel", scope="gpu") == tl.num_programs(0) - 1:
        place = tl.arange(0, MOST)
        found = tl.load(sums_ptr + place, mask=place < tl.num_programs(0), other=0.0, cache_modifier=".cg")
        tl.store(out_ptr, tl.sum(found, axis=0) / n)
        tl.store(ticket_ptr, 0)


def means(recorder: Recorder) -> None:
    """Rows `means/sizes`, `means/ways` and `means/shapes`. Ratios are of consecutive calls."""
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    with tempfile.TemporaryDirectory() as folder:
        reference = load(find("mean_triton"), Path(folder))
        for n in _SIZES:
            x = torch.randn(n, device="cuda")
            _measure(recorder, "means/sizes", x, {f"{n:,} elements": reference, _TORCH: _torch_mean})
        x = torch.randn(_LARGE, device="cuda")
        others = {name: way for name, way in ways(x, 8 * sms, 4096).items() if _runs(name, way, x)}
        _measure(recorder, "means/ways", x, {_REFERENCE: reference, _TORCH: _torch_mean} | others)
        for name, way in ({_REFERENCE: reference, _TORCH: _torch_mean} | others).items():
            recorder.add("means/ways", name, "different_results", f"of {_RESULTS}", _different(way, x))
        kernel = reference.__globals__["sums_kernel"]
        shapes: dict[str, Launch] = {
            f"{per_sm} × {sms} programs, block {block:,}, {warps} warps": shape(kernel, x, per_sm * sms, block, warps)
            for per_sm, block, warps in _SHAPES
        }
        _measure(recorder, "means/shapes", x, shapes | {_TORCH: _torch_mean})


def shape(kernel: Any, x: Any, programs: int, block: int, warps: int) -> Launch:
    """Return a launch of the reference solution's kernel in this shape, on vectors like `x`."""
    sums = torch.empty(programs, device=x.device)

    def run(x: Any, out: Any) -> None:
        kernel[(programs,)](x, sums, x.numel(), 1, BLOCK_SIZE=block, num_warps=warps)
        kernel[(1,)](sums, out, programs, x.numel(), BLOCK_SIZE=1024)

    return run


def ways(x: Any, programs: int, block: int) -> dict[str, Launch]:
    """Return other ways to compute the mean of vectors like `x`: one launch, atomics, and element by element."""
    sums = torch.empty(programs, device=x.device)
    ticket = torch.zeros(1, dtype=torch.int32, device=x.device)
    parts = torch.empty(triton.cdiv(x.numel(), 1024), device=x.device)
    most = triton.next_power_of_2(programs)

    def last_program(x: Any, out: Any) -> None:
        _ticket_kernel[(programs,)](x, out, sums, ticket, x.numel(), BLOCK=block, MOST=most, num_warps=8)

    def atomics(x: Any, out: Any) -> None:
        out.zero_()  # the sum starts at 0, which is part of the method and of its time
        _atomic_kernel[(programs,)](x, out, x.numel(), BLOCK=block, num_warps=8)

    def elements(x: Any, out: Any) -> None:
        element_kernel[(parts.numel(),)](x, parts, x.numel(), BLOCK=1024)
        torch.sum(parts, 0, keepdim=True, out=out)

    return {
        "one launch, the last program finishes": last_program,
        "one atomic addition per program": atomics,
        "element by element, and parts.sum()": elements,
    }


def _runs(name: str, way: Launch, x: Any) -> bool:
    """Whether it compiles and runs here: the kernel that circulates was written for an older Triton."""
    try:
        way(x, torch.empty(1, device="cuda"))
        torch.cuda.synchronize()
    except Exception as error:  # whatever the compiler raises
        print(f"{name} does not run here: {type(error).__name__}: {error}")
        return False
    return True


def _different(way: Launch, x: Any) -> int:
    """Return how many different results `_RESULTS` launches on the same data give."""
    outs = torch.empty(_RESULTS, 1, device="cuda")
    for out in outs:
        way(x, out)
    return len(set(outs.flatten().tolist()))


def _torch_mean(x: Any, out: Any) -> None:
    torch.mean(x, 0, keepdim=True, out=out)


def _measure(recorder: Recorder, bench: str, x: Any, peers: dict[str, Launch]) -> None:
    """Add the rows of each peer, and its ratio to `torch.mean`, call by call in the same run."""
    outs = {name: torch.full((1,), float("nan"), device="cuda") for name in peers}
    calls: dict[str, Callable[[], Any]] = {name: partial(peer, x, outs[name]) for name, peer in peers.items()}
    times = in_turn(calls)
    expected, budget = x.double().mean(0, keepdim=True), find("mean_triton").budget
    wrong = [name for name, out in outs.items() if not bool(within(out, expected, budget).all())]
    if wrong:
        raise SystemExit(f"Wrong for {x.numel():,} elements: {', '.join(wrong)}. No figure is written.")
    case = {_TORCH: f"torch.mean, {x.numel():,} elements"} if bench == "means/sizes" else {}
    for name, samples in times.items():
        median_us, low_us, high_us = astuple(interval(samples))
        gbps = [4 * x.numel() / us / 1e3 for us in (median_us, high_us, low_us)]
        ratios = [theirs / ours for theirs, ours in zip(times[_TORCH], samples, strict=True)]
        recorder.add(bench, case.get(name, name), "median_us", "µs", median_us, low_us, high_us)
        recorder.add(bench, case.get(name, name), "bandwidth_gbps", "GB/s", *gbps)
        if name != _TORCH:
            recorder.add(bench, case.get(name, name), "ratio_vs_torch", "1", *astuple(interval(ratios)))
