"""The worker's start on a GPU: imports, the CUDA context, one small kernel, and lines in compiler errors."""

from __future__ import annotations

import os

import torch
import triton
import triton.language as tl

from grader.worker.cuda_on_cpu.lines import install_line_marks

__all__ = ["start"]


@triton.jit  # type: ignore[untyped-decorator]
def _fill(out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.sum(tl.exp(at.to(tl.float32))), mask=at < n)


def start() -> None:
    """Makes the context and runs a kernel: that builds Triton's driver stub, about a second, ahead of need."""
    out = torch.empty(64, device="cuda")
    major, minor = torch.cuda.get_device_capability()
    os.environ.setdefault("TORCH_CUDA_ARCH_LIST", f"{major}.{minor}")  # one architecture: half the build
    _fill[(1,)](out, 64, BLOCK=64)
    torch.cuda.synchronize()
    install_line_marks()
