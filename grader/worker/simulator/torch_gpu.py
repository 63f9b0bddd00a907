"""Answers to what a submission asks torch of a GPU: events, generators, pinned memory, memory in use, `torch.compile`.

`torch.cuda.Stream` is missing on purpose: everything runs in order here, so that a missing wait would not show.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch

from grader.worker.simulator import start, virtual_gpu
from grader.worker.simulator.devices import GPU, is_submission, use_default

_MEMORY_BYTES = 80 << 30
_NVTX = ("range_push", "range_pop", "range_start", "range_end", "mark")


def install() -> None:
    """Replace what torch has for GPUs alone, and some functions for submissions alone. A second call does nothing."""
    cuda: Any = torch.cuda
    accelerator: Any = torch.accelerator
    module: Any = torch
    if cuda.Event is virtual_gpu.Event:
        return
    stream = virtual_gpu.Stream()
    cuda.Event, module.Event = virtual_gpu.Event, virtual_gpu.DeviceEvent
    # Each is a function of its own: torch.compile, which a harness may use, tells them apart.
    cuda.current_stream = lambda device=None: stream
    cuda.default_stream = lambda device=None: stream
    accelerator.current_stream = lambda device=None: stream
    cuda.init = lambda: None
    cuda._exchange_device = lambda device: 0
    cuda._maybe_exchange_device = lambda device: 0
    for name in ("reset_peak_memory_stats", "reset_accumulated_memory_stats", "reset_max_memory_allocated"):
        setattr(cuda, name, lambda device=None: None)
    cuda.mem_get_info = lambda device=None: (_MEMORY_BYTES, _MEMORY_BYTES)
    for name in _NVTX:
        setattr(cuda.nvtx, name, lambda *_, **__: 0)
    accelerator.synchronize = lambda device=None: start.synchronize()
    accelerator.current_device_index = lambda: 0
    accelerator.current_accelerator = _for_submissions(
        lambda check_available=False: torch.device(GPU), accelerator.current_accelerator
    )
    module._C._cuda_getCurrentRawStream = lambda device: 0
    module.Tensor.record_stream = lambda tensor, stream: None
    module.Generator = _Generator
    module.set_default_device = _for_submissions(use_default, torch.set_default_device)
    module.compile = _for_submissions(_eager, torch.compile)


def _for_submissions(ours: Callable[..., Any], theirs: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(theirs)
    def call(*args: Any, **named: Any) -> Any:
        return (ours if is_submission(sys._getframe(1)) else theirs)(*args, **named)

    return call


def _eager(model: Any = None, **_: Any) -> Any:
    """`torch.compile` of a submission: the results are the same without it, and its compiler would ask for the GPU."""
    return (lambda function: function) if model is None else model


class _Generator(torch.Generator):
    """`torch.Generator`, of either device; all numbers are drawn on the CPU."""

    of_gpu = False

    def __new__(cls, device: Any = "cpu") -> Any:
        make: Any = super().__new__
        kind = GPU if isinstance(device, int) else torch.device(device).type
        made = make(cls, "cpu" if kind == GPU else device)
        made.of_gpu = kind == GPU
        return made

    def __init__(self, device: Any = "cpu") -> None:
        """Take the argument that `__new__` has used."""

    @property
    def device(self) -> Any:  # type: ignore[override]
        return torch.device(GPU, 0) if self.of_gpu else super().device
