"""Run GPU code without a GPU: Triton in its interpreter, and CUDA C++ compiled for the CPU.

Call `prepare()` before anything imports triton, and `install()` after importing torch. Then, with CPU tensors,
`load_inline` builds `cuda_sources` with the C++ compiler, and `synchronize()` raises a kernel's failure.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from grader.errors import GraderError
from grader.worker.simulator import triton_log
from grader.worker.simulator.cuda_source import COMPILER_FLAGS, INCLUDE, synchronize, translate, watch
from grader.worker.toolchain.compiler_errors import cell_of_caller, line_mark, sources_of

__all__ = ["install", "prepare", "synchronize", "take_first"]

_KEPT_CUDA_FLAGS = ("-D", "-U", "-I", "-std=")  # the others are nvcc's own, or for speed
_DROPPED_LIBRARIES = ("-lcu", "-lnv")


def prepare() -> None:
    """Make Triton interpret its kernels. Raise `GraderError` if triton was already imported as a compiler."""
    os.environ["TRITON_INTERPRET"] = "1"
    language = sys.modules.get("triton.language")
    if language is not None and type(getattr(language, "zeros", None)).__name__ != "InterpretedFunction":
        raise GraderError(
            "triton was imported before its interpreter was chosen, so kernels would ask for a GPU. "
            "Set TRITON_INTERPRET=1 before Python starts, or import triton after grader."
        )


def install() -> None:
    """Replace torch's `load_inline` with one for the CPU. A second call does nothing.

    `torch.cuda.synchronize` and `torch.cuda.current_stream().cuda_stream` work too, because submissions use them.
    """
    import torch
    from torch.utils import cpp_extension

    from grader.worker.simulator import cupy_module, numba_on_cpu
    from grader.worker.toolchain import nvcc

    cupy_module.offer()
    numba_on_cpu.offer()
    nvcc.offer(simulated=True)
    original = cpp_extension.load_inline
    if hasattr(original, "__wrapped__"):
        return
    cpp_extension.load_inline = _on_cpu(original)
    _poison_masked_elements()
    torch.cuda.synchronize = lambda device=None: synchronize()
    torch.cuda.current_stream = lambda device=None: SimpleNamespace(cuda_stream=0, synchronize=synchronize)  # type: ignore[assignment,return-value]


def _poison_masked_elements() -> None:
    """Load masked elements as NaN, so that code does not rely on the 0 of Triton's interpreter.

    On a GPU they are undefined unless the load has an `other`. Integers, and types that NumPy does not have, stay 0.
    """
    import numpy as np
    from triton.runtime import interpreter

    builder: Any = interpreter.InterpreterBuilder
    original = builder.create_masked_load

    @functools.wraps(original)
    def create_masked_load(self: Any, ptrs: Any, mask: Any, other: Any, *how: Any, **named: Any) -> Any:
        kind = ptrs.get_element_ty()
        numpys = interpreter._get_np_dtype(kind)
        if other is None and kind.is_floating() and np.issubdtype(numpys, np.floating):
            other = interpreter.TensorHandle(np.full_like(ptrs.data, np.nan, dtype=numpys), kind)
        return original(self, ptrs, mask, other, *how, **named)

    builder.create_masked_load = create_masked_load


def _on_cpu(original: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def load_inline(*args: Any, **kwargs: Any) -> Any:
        call = signature.bind(*args, **kwargs).arguments
        cuda_sources = sources_of(call.pop("cuda_sources", None))
        if not cuda_sources:
            return original(**call)
        cell = cell_of_caller()
        headers = [] if call.get("no_implicit_headers") else ["#include <torch/extension.h>"]
        call["cpp_sources"] = [
            '#include "cuda_on_cpu.h"',
            *headers,
            *(_translated(source, "cpp_source", cell) for source in sources_of(call.get("cpp_sources"))),
            *(_translated(source, "cuda_source", cell) for source in cuda_sources),
            '#line 1 "binding"',
        ]
        call["no_implicit_headers"] = True
        cuda_flags = [flag for flag in call.pop("extra_cuda_cflags", None) or [] if flag.startswith(_KEPT_CUDA_FLAGS)]
        call["extra_cflags"] = [*(call.get("extra_cflags") or []), *COMPILER_FLAGS, *cuda_flags]
        call["extra_include_paths"] = [str(INCLUDE), *(call.get("extra_include_paths") or [])]
        call["extra_ldflags"] = [f for f in call.get("extra_ldflags") or [] if not f.startswith(_DROPPED_LIBRARIES)]
        call["with_cuda"] = False
        extension = original(**call)
        watch(extension)
        return extension

    return load_inline


def _translated(source: str, name: str, cell: str) -> str:
    return line_mark(source, name, cell) + translate(source)


def take_first() -> None:
    """Let every autotuner without its own clock take its first configuration, because nothing can be timed here."""
    from triton.runtime.autotuner import Autotuner

    def untimed(tuner: Any) -> Any:
        triton_log.will_tune(tuner)
        return lambda call, quantiles: [0.0] * len(quantiles)

    Autotuner.do_bench = property(lambda tuner: tuner._do_bench or untimed(tuner))
