"""Triton kernels that several tests share, compiled once per session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from grader.explore import compile_kernel
from grader.explore.hopper.language_views import load_file
from grader.explore.triton_compiler.compiled_stages import Compiled

KERNELS = """
import triton
import triton.language as tl

SCALE = tl.constexpr(3)

@triton.jit
def tripled(x):
    return SCALE * x

@triton.jit
def triple_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tripled(x), mask=i < n)

@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, K, stride, M: tl.constexpr, N: tl.constexpr, BLOCK_K: tl.constexpr):
    m, n = tl.program_id(0) * M + tl.arange(0, M), tl.program_id(1) * N + tl.arange(0, N)
    k = tl.arange(0, BLOCK_K)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + m[:, None] * stride + start + k[None, :])
        b = tl.load(b_ptr + (start + k)[:, None] * stride + n[None, :])
        total = tl.dot(a, b, total)
    tl.store(c_ptr + m[:, None] * stride + n[None, :], total.to(tl.float16))
"""
X, H = torch.zeros(1024), torch.zeros(64, 64, dtype=torch.float16)


@pytest.fixture(scope="session")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = Path(tmp_path_factory.mktemp("kernels"), "kernels_to_explore.py")
    path.write_text(KERNELS)
    return load_file(path)


@pytest.fixture(scope="session")
def triple(kernels: Any) -> Compiled:
    return compile_kernel(kernels.triple_kernel, X, X, 1024, BLOCK=1024)


@pytest.fixture(scope="session")
def matmul(kernels: Any) -> Compiled:
    return compile_kernel(kernels.matmul_kernel, H, H, H, 64, 64, M=64, N=64, BLOCK_K=32)
