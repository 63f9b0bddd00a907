"""The one GPU that a worker may use: its device nodes, the name by which CUDA finds it, the toolkit to build with."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import os
import uuid
from dataclasses import dataclass
from glob import glob
from pathlib import Path

from grader.hardware import cuda_home, torch_cuda

__all__ = ["GpuAccess", "gpu_access"]

_SHARED = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/dxg")  # the last is WSL's
_MIG = "/dev/nvidia-caps"


@dataclass(frozen=True)
class GpuAccess:
    """Device nodes, what CUDA_VISIBLE_DEVICES is with them, and CUDA's home."""

    nodes: tuple[str, ...] = ()
    visible: str = ""
    toolkit: Path | None = None


def gpu_access(device: str) -> GpuAccess | None:
    """For "cuda", CUDA's device 0 of this process's environment; None for "simulator"."""
    return GpuAccess(*_nodes(), cuda_home(torch_cuda())) if device == "cuda" else None


@functools.cache
def _nodes() -> tuple[tuple[str, ...], str]:
    """With the nodes of every GPU there is where NVML does not know the one's minor number."""
    bus, visible = _device_0()
    shared = [path for path in _SHARED if os.path.exists(path)]
    own = sorted(glob("/dev/nvidia[0-9]*"))
    with contextlib.suppress(Exception):  # no NVML, or one that does not know this GPU
        nvml = importlib.import_module("pynvml")
        nvml.nvmlInit()
        node = f"/dev/nvidia{nvml.nvmlDeviceGetMinorNumber(nvml.nvmlDeviceGetHandleByPciBusId(bus))}"
        own = [node] if node in own else own
    if visible.startswith("MIG-") and os.path.exists(_MIG):
        shared.append(_MIG)
    return (*own, *shared), visible


def _device_0() -> tuple[str, str]:
    """Its PCI bus id, and "GPU-…" or, for a share of one, "MIG-…". Asked of the driver, who alone knows the order."""
    kept = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    try:
        return _asked(ctypes.CDLL("libcuda.so.1")) or ("", kept)
    except (OSError, AttributeError):
        return "", kept


def _asked(cuda: ctypes.CDLL) -> tuple[str, str] | None:
    device, bus = ctypes.c_int(), ctypes.create_string_buffer(32)
    whole, share = ctypes.create_string_buffer(16), ctypes.create_string_buffer(16)
    answers = (
        cuda.cuInit(0),
        cuda.cuDeviceGet(ctypes.byref(device), 0),
        cuda.cuDeviceGetPCIBusId(bus, 32, device),
        cuda.cuDeviceGetUuid(whole, device),
        cuda.cuDeviceGetUuid_v2(share, device),
    )
    if any(answers):
        return None
    kind = "GPU" if whole.raw == share.raw else "MIG"
    return bus.value.decode(), f"{kind}-{uuid.UUID(bytes=share.raw)}"
