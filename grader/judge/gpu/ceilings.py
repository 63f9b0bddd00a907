"""The machine of a verdict: its names, its measured bandwidth and compute ceilings, and the speed of its processor.

A core whose sibling hardware thread is busy runs at half speed, which adds up to 0.1 ms to a round. A submission is
stopped while a baseline runs, so it can hardly cause that: at most by GPU work that interrupts the host.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import math
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch

from grader.errors import MachineLacks
from grader.exercise import Exercise

Device = Literal["cuda", "simulator"]
_COPY_BYTES = 1 << 29
_PRODUCT_SIZE = 4096
_REPEATS = 9
_STEADY_S = 0.1


@dataclass(frozen=True)
class Machine:
    """A machine. `copy_gbps`: bytes read plus written by a large device-to-device copy. `peak_tflops`: of a float16
    matrix product. Both are measured, and 0 in a simulator. `slowness`: the factor of all time limits.
    """

    device: Device
    gpu: str
    driver: str
    torch: str
    triton: str
    python: str
    l2_bytes: int
    copy_gbps: float
    peak_tflops: float = 0.0
    slowness: float = 1.0
    capability: float = 0.0  # the compute capability; 0 in a simulator
    multiprocessors: int = 0  # SMs; 0 in a simulator

    @classmethod
    def measure(cls, device: Device) -> Machine:
        """Measure this machine; on a GPU, time a copy and a float16 product."""
        gpu, l2, multiprocessors = "", 0, 0
        if device == "cuda":
            properties = torch.cuda.get_device_properties(0)
            gpu, l2, multiprocessors = properties.name, properties.L2_cache_size, properties.multi_processor_count
        return cls(
            device=device,
            gpu=gpu,
            driver=_driver() if gpu else "",
            torch=torch.__version__,
            triton=_version("triton"),
            python=platform.python_version(),
            l2_bytes=l2,
            copy_gbps=_copy_gbps(torch) if gpu else 0.0,
            peak_tflops=_peak_tflops(torch) if gpu else 0.0,
            slowness=slowness(),
            capability=_capability(torch) if gpu else 0.0,
            multiprocessors=multiprocessors,
        )


def resolve(device: str) -> Device:
    """Resolve "auto" to the GPU, if torch sees one. MachineLacks: "cuda" is required and torch sees none."""
    if device == "simulator":
        return "simulator"
    if torch.cuda.is_available():
        return "cuda"
    if device == "cuda":
        raise MachineLacks(
            "torch sees no GPU on this machine. `grader doctor` says why; `--device simulator` does without."
        )
    return "simulator"


def _capability(torch: Any) -> float:
    major, minor = torch.cuda.get_device_capability()
    return float(f"{major}.{minor}")


def _copy_gbps(torch: Any) -> float:
    source = torch.empty(min(_COPY_BYTES, torch.cuda.mem_get_info()[0] // 4), dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return float(2 * source.numel() / _seconds(torch, lambda: target.copy_(source)) / 1e9)


def _peak_tflops(torch: Any) -> float:
    size = _PRODUCT_SIZE
    # random numbers: at its power limit, a GPU multiplies constants faster than any submission's data
    a, b = (torch.randn(size, size, dtype=torch.float16, device="cuda") for _ in range(2))
    out = torch.empty_like(a)
    return 2 * size**3 / _seconds(torch, lambda: torch.mm(a, b, out=out)) / 1e12


def _seconds(torch: Any, call: Callable[[], Any]) -> float:
    """Return the least seconds of a call by events, once it stops falling: other work and low clocks only add."""
    seconds: list[float] = []
    least_at = time.monotonic()
    while len(seconds) < _REPEATS or time.monotonic() - least_at < _STEADY_S:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        end.synchronize()
        seconds.append(start.elapsed_time(end) / 1e3)
        if seconds[-1] < 0.99 * min(seconds[:-1], default=math.inf):
            least_at = time.monotonic()
    return float(min(seconds))


def _driver() -> str:
    with contextlib.suppress(Exception):  # NVML is optional
        import pynvml

        pynvml.nvmlInit()
        return str(pynvml.nvmlSystemGetDriverVersion())
    return ""


def _version(package: str) -> str:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(package)
    return ""


_STEPS = 1500  # some 40 µs
_TRIES = 3  # the fastest counts, to ignore interrupts
_STRAINED = 1.4  # times the least so far; a shared core takes 1.7 to 2 times as long
_USUAL_S = 6e-5  # for these steps on the busy hosts where the time limits were set
_LOOKS = 200  # some 30 ms


class HostSpeed:
    """Watches the speed of the core that the calling thread is on."""

    def __init__(self) -> None:
        self._least_s = math.inf

    def is_strained(self) -> bool:
        """Whether the processor is slow now. The first call returns False."""
        taken_s = min(_taken_s() for _ in range(_TRIES))
        self._least_s = min(self._least_s, taken_s)
        return taken_s > _STRAINED * self._least_s


def slowness() -> float:
    """Return the factor of all time limits: this processor's time over the usual time, at least 1."""
    return max(1.0, min(_taken_s() for _ in range(_LOOKS)) / _USUAL_S)


def whole_limit_s(exercise: Exercise, device: str, slowness: float) -> float:
    """Return the limit of import, cases and timing together; twice as long in a simulator."""
    return slowness * exercise.wall_limit_s * (1 if device == "cuda" else 2)


def _taken_s() -> float:
    began, total = time.perf_counter(), 0
    for step in range(_STEPS):
        total += step
    return time.perf_counter() - began
