"""The machine that a verdict was reached on: its names, and the ceilings measured on it."""

from __future__ import annotations

import contextlib
import importlib.metadata
import platform
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

from grader.errors import MachineLacks

__all__ = ["Device", "Machine", "resolve"]

Device = Literal["cuda", "simulator"]
_COPY_BYTES = 1 << 29
_COPIES = 9


@dataclass(frozen=True)
class Machine:
    """`copy_gbps`: bytes read plus bytes written by a large device-to-device copy, measured; 0 in a simulator."""

    device: Device
    gpu: str
    driver: str
    torch: str
    triton: str
    python: str
    l2_bytes: int
    copy_gbps: float

    @classmethod
    def measure(cls, device: Device) -> Machine:
        """Looks at this machine, and times a copy where there is a GPU."""
        import torch

        gpu, l2 = "", 0
        if device == "cuda":
            properties = torch.cuda.get_device_properties(0)
            gpu, l2 = properties.name, properties.L2_cache_size
        return cls(
            device=device,
            gpu=gpu,
            driver=_driver() if gpu else "",
            torch=torch.__version__,
            triton=_version("triton"),
            python=platform.python_version(),
            l2_bytes=l2,
            copy_gbps=_copy_gbps(torch) if gpu else 0.0,
        )


def resolve(device: str) -> Device:
    """ "auto" is the GPU where there is one.

    Raises:
        MachineLacks: "cuda" was asked for and torch sees no GPU.
    """
    import torch

    if device == "simulator":
        return "simulator"
    if torch.cuda.is_available():
        return "cuda"
    if device == "cuda":
        raise MachineLacks(
            "torch sees no GPU on this machine. `grader doctor` says why; `--device simulator` does without."
        )
    return "simulator"


def _copy_gbps(torch: Any) -> float:
    source = torch.empty(min(_COPY_BYTES, torch.cuda.mem_get_info()[0] // 4), dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    seconds = []
    for _ in range(_COPIES):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        target.copy_(source)
        end.record()
        end.synchronize()
        seconds.append(start.elapsed_time(end) / 1e3)
    moved = 2 * source.numel()
    del source, target
    torch.cuda.empty_cache()
    return float(moved / median(seconds[2:]) / 1e9)


def _driver() -> str:
    with contextlib.suppress(Exception):  # NVML is for the record; a verdict does not hang on it
        import pynvml

        pynvml.nvmlInit()
        return str(pynvml.nvmlSystemGetDriverVersion())
    return ""


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
