"""A worker's simulator answers what Triton code asks of a GPU, and computes with bfloat16."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

_START = """
from grader.worker.simulator import start
start.prepare()
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
from grader.worker.simulator import bfloat16, torch_gpu, triton_gpu, triton_log
start.install()
start.take_first()
for _ in range(2):
    bfloat16.install()
    triton_gpu.install()
    torch_gpu.install()
    triton_log.watch()

@triton.jit
def double(x_ptr, out_ptr, n, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(out_ptr + i, 2 * tl.load(x_ptr + i, mask=i < n), mask=i < n)

x, out = torch.randn(100), torch.zeros(100)
"""

_IS_CUDA = """
assert x.is_cuda and x.device.type == "cpu"
def elsewhere(tensor):
    scope = {}
    exec(compile("def asks(tensor): return tensor.is_cuda", "library.py", "exec"), scope)
    return scope["asks"](tensor)
assert not elsewhere(x)
"""

_DRIVER = """
from triton.runtime import driver
device = driver.active.get_active_torch_device()
assert driver.active.utils.get_device_properties(device.index)["multiprocessor_count"] == 132
assert driver.active.get_current_target().backend == "cuda"
assert torch.cuda.get_device_properties(x.device).multi_processor_count == 132
assert torch.cuda.get_device_capability() == (9, 0)
compiled = double.warmup(x, out, 100, SIZE=64, num_warps=4, grid=(1,))
compiled._init_handles()
assert compiled.n_regs > 0 and compiled.metadata.shared > 0
assert not out.any()
compiled[(2, 1, 1)](x, out, 100)
assert torch.equal(out, 2 * x)
assert double[(2,)](x, out, 100, SIZE=64).n_spills == 0
"""

_TARGET = """
import os
from triton.runtime import driver
os.environ["GRADER_TARGET"] = "8.6"
assert torch.cuda.get_device_capability() == (8, 6)
assert driver.active.get_current_target().arch == 86
assert torch.cuda.get_device_properties(x.device).shared_memory_per_block_optin == 99 << 10
"""

_DO_BENCH = """
calls = []
def call():
    calls.append(1)
    double[(2,)](x, out, 100, SIZE=64)
assert triton.testing.do_bench(call, warmup=1, rep=1) > 0
assert calls
"""

_LIBDEVICE = """
import math

@triton.jit
def every(x_ptr, out_ptr, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, libdevice.exp(x))
    tl.store(out_ptr + SIZE + i, libdevice.rsqrt(x))
    tl.store(out_ptr + 2 * SIZE + i, libdevice.pow(x, x))
    tl.store(out_ptr + 3 * SIZE + i, libdevice.fast_sinf(x))
    tl.store(out_ptr + 4 * SIZE + i, libdevice.erf(x))
    tl.store(out_ptr + 5 * SIZE + i, libdevice.tanh(x))

x, out = torch.rand(32) + 0.1, torch.zeros(6 * 32)
every[(1,)](x, out, SIZE=32)
right = torch.cat([x.exp(), x.rsqrt(), x.pow(x), x.sin(), x.erf(), x.tanh()])
assert torch.allclose(out, right, atol=1e-6), (out - right).abs().max()

@triton.jit
def unknown(x_ptr, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(x_ptr + i, libdevice.cyl_bessel_i0(tl.load(x_ptr + i)))

try:
    unknown[(1,)](x, SIZE=32)
except Exception as error:
    assert "The simulator has no libdevice function `__nv_cyl_bessel_i0f`" in str(error), error
else:
    raise AssertionError
"""

_BFLOAT16 = """
@triton.jit
def mixed(x_ptr, y_ptr, out_ptr, wide_ptr, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    tl.store(out_ptr + i, x * y + x)
    tl.store(wide_ptr + i, tl.where(x > y, x.to(tl.float32), 0.0))

@triton.jit
def product(a_ptr, b_ptr, c_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    sums = tl.full((SIZE, SIZE), 0, tl.bfloat16).to(tl.float32)
    tl.store(c_ptr + at, tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at), sums).to(tl.bfloat16))

x, y = torch.randn(64).bfloat16(), torch.randn(64).bfloat16()
out, wide = torch.zeros(64).bfloat16(), torch.zeros(64)
mixed[(1,)](x, y, out, wide, SIZE=64)
assert torch.equal(out, x * y + x)
assert torch.equal(wide, torch.where(x > y, x.float(), 0.0))
a, b, c = torch.randn(16, 16).bfloat16(), torch.randn(16, 16).bfloat16(), torch.zeros(16, 16).bfloat16()
product[(1,)](a, b, c, SIZE=16)
assert torch.allclose(c.float(), a.float() @ b.float(), rtol=1e-2, atol=1e-2)
"""

_AGGREGATE = """
from grader.worker.simulator.lacks import said_by
from triton.language import core

@core._aggregate
class Span:
    n: tl.tensor

    def __init__(self, n):
        self.n = n

    @triton.jit
    def inside(self, i):
        return i < self.n

@triton.jit
def copy(x_ptr, out_ptr, n, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    mask = Span(n).inside(i)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask), mask=mask)

try:
    copy[(1,)](torch.zeros(32), torch.zeros(32), 30, SIZE=32)
except Exception as error:
    assert "The simulator has no method of an `_aggregate`" in said_by(error)[0], error

@triton.jit
def misspelt(x_ptr, n):
    tl.store(x_ptr, Span(n).m)

try:
    misspelt[(1,)](torch.zeros(32), 30)
except Exception as error:
    assert said_by(error) is None, error
else:
    raise AssertionError
"""


@pytest.mark.parametrize(
    "text",
    [_IS_CUDA, _DRIVER, _TARGET, _DO_BENCH, _LIBDEVICE, _BFLOAT16, _AGGREGATE],
    ids=["is_cuda", "driver", "target", "do_bench", "libdevice", "bfloat16", "aggregate"],
)
def test_a_submission_finds_what_a_gpu_has(tmp_path: Path, text: str) -> None:
    """The text runs to its end: each assertion in it holds."""
    script = tmp_path / "submission.py"
    script.write_text(_START + text, encoding="utf-8")
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
