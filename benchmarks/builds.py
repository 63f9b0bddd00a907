"""Seconds to build one kernel with `load_inline`, with more and fewer headers, and with NVRTC. Nothing is cached."""

from __future__ import annotations

import ctypes
import os
import tempfile
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from torch.utils.cpp_extension import load_inline

from benchmarks.rows import Recorder

_REPEATS = 3
_KERNEL = """
__global__ void square_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] * x[i];
}
"""
_LAUNCH = "void launch(const float* x, float* out, int n) { square_kernel<<<(n + 255) / 256, 256>>>(x, out, n); }\n"
_ON_TENSORS = """
void square(torch::Tensor x, torch::Tensor out) {
    launch(x.data_ptr<float>(), out.data_ptr<float>(), x.numel());
}
"""
_LIBRARY = """#include <ATen/core/Tensor.h>
#include <torch/library.h>
void launch(const float* x, float* out, int n);
void square(const at::Tensor& x, at::Tensor out) {
    launch(x.const_data_ptr<float>(), out.mutable_data_ptr<float>(), x.numel());
}
TORCH_LIBRARY(NAME, m) { m.def("square(Tensor x, Tensor(a!) out) -> ()", &square); }
"""
_STABLE = """#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>
void launch(const float* x, float* out, int n);
void square(torch::stable::Tensor x, torch::stable::Tensor out) {
    launch(static_cast<const float*>(x.data_ptr()), static_cast<float*>(out.data_ptr()), x.numel());
}
STABLE_TORCH_LIBRARY(NAME, m) { m.def("square(Tensor x, Tensor(a!) out) -> ()"); }
STABLE_TORCH_LIBRARY_IMPL(NAME, CUDA, m) { m.impl("square", TORCH_BOX(&square)); }
"""


def _default(name: str) -> Callable[..., Any]:
    sources = {"cpp_sources": "void square(torch::Tensor x, torch::Tensor out);"}
    module = load_inline(name, cuda_sources=_KERNEL + _LAUNCH + _ON_TENSORS, functions=["square"], **sources)
    return module.square  # type: ignore[no-any-return]


def _operator(binding: str, name: str) -> Callable[..., Any]:
    load_inline(
        name, binding.replace("NAME", name), _KERNEL + _LAUNCH, no_implicit_headers=True, is_python_module=False
    )
    return getattr(torch.ops, name).square  # type: ignore[no-any-return]


def _plain(name: str) -> Callable[..., Any]:
    source = _KERNEL + 'extern "C" ' + _LAUNCH
    path = load_inline(name, "", source, no_implicit_headers=True, is_python_module=False)
    library = ctypes.CDLL(path)
    return lambda x, out: library.launch(*(ctypes.c_void_p(t.data_ptr()) for t in (x, out)), x.numel())


def _nvrtc(name: str) -> Callable[..., Any]:
    kernel = torch.cuda._compile_kernel('extern "C" ' + _KERNEL.replace("square_kernel", name).strip(), name)
    return lambda x, out: kernel((-(-x.numel() // 256), 1, 1), (256, 1, 1), (x, out, x.numel()))


_WAYS: dict[str, Callable[[str], Callable[..., Any]]] = {
    "default headers": _default,
    "TORCH_LIBRARY in a file of its own": lambda name: _operator(_LIBRARY, name),
    "torch's stable ABI in a file of its own": lambda name: _operator(_STABLE, name),
    "no torch headers, called by ctypes": _plain,
    "NVRTC": _nvrtc,
}


def builds(recorder: Recorder) -> None:
    """Rows `load_inline`, metric `build_s`: the median and range of first builds for this one GPU."""
    major, minor = torch.cuda.get_device_capability()
    os.environ["TORCH_CUDA_ARCH_LIST"] = f"{major}.{minor}"
    x = torch.randn(1000, device="cuda")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCH_EXTENSIONS_DIR"] = folder
        for number, (case, build) in enumerate(_WAYS.items()):
            seconds = []
            for repeat in range(_REPEATS):
                begun = time.perf_counter()
                function = build(f"build_{number}_{repeat}")
                seconds.append(time.perf_counter() - begun)
                out = torch.zeros_like(x)
                function(x, out)
                if not torch.equal(out, x * x):
                    raise SystemExit(f"{case}: the result is wrong. No figure is written.")
            recorder.add("load_inline", case, "build_s", "s", median(seconds), min(seconds), max(seconds))
