"""Run GPU code without a GPU: Triton in its interpreter, and CUDA C++ compiled for the CPU.

Call `prepare()` before anything imports triton, and `install()` after importing torch. Then, with CPU tensors,
`load_inline` builds `cuda_sources` with the C++ compiler, and `synchronize()` raises a kernel's failure.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from grader.errors import GraderError
from grader.protocol.arena import GUARD_BYTES
from grader.worker.simulator import cuda_compiled, tally, triton_gpu, triton_log
from grader.worker.simulator.cuda_library import Buffer, synchronize, take_observed, use_buffers, watch
from grader.worker.simulator.cuda_source import COMPILER_FLAGS, INCLUDE, flags_with_torch, macros_of, translate
from grader.worker.simulator.header_build import Parts, use_compiler
from grader.worker.simulator.header_build import parts as header_parts
from grader.worker.simulator.input_writes import names_of
from grader.worker.simulator.lacks import NotSimulated, lacking
from grader.worker.toolchain.compiler_errors import cell_of_caller, line_mark, place_of_error, sources_of

__all__ = [
    "install",
    "prepare",
    "size_grids_as_on_a_gpu",
    "synchronize",
    "take_first",
    "take_observed",
    "use_arguments",
]

_KEPT_CUDA_FLAGS = ("-U", "-I", "-std=")  # the others are macros, nvcc's own, or for speed
_TORCHS_CUDA_FLAGS = (  # half precision has no operators and no conversions in torch's extensions
    "-D__CUDA_NO_HALF_OPERATORS__", "-D__CUDA_NO_HALF_CONVERSIONS__", "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "-D__CUDA_NO_HALF2_OPERATORS__",
)  # fmt: skip
_TORCH = re.compile(r"#\s*include\s*[<\"](?:torch|ATen|c10)/")
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
    The builder cannot tell: in the interpreter, one `other` of 0.0 is false, so `load` hands it None.
    """
    import numpy as np
    from triton.language.semantic import TritonSemantic
    from triton.runtime import interpreter

    builder: Any = interpreter.InterpreterBuilder
    semantic: Any = TritonSemantic
    load, masked_load = semantic.load, builder.create_masked_load
    has_other = False

    @functools.wraps(load)
    def noted_load(self: Any, ptr: Any, mask: Any, other: Any, *how: Any, **named: Any) -> Any:
        nonlocal has_other
        has_other = other is not None
        return load(self, ptr, mask, other, *how, **named)

    @functools.wraps(masked_load)
    def create_masked_load(self: Any, ptrs: Any, mask: Any, other: Any, *how: Any, **named: Any) -> Any:
        kind = ptrs.get_element_ty()
        numpys = interpreter._get_np_dtype(kind)
        if other is None and not has_other and kind.is_floating() and np.issubdtype(numpys, np.floating):
            other = interpreter.TensorHandle(np.full_like(ptrs.data, np.nan, dtype=numpys), kind)
        return masked_load(self, ptrs, mask, other, *how, **named)

    semantic.load, builder.create_masked_load = noted_load, create_masked_load


def _on_cpu(original: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def load_inline(*args: Any, **kwargs: Any) -> Any:
        call = signature.bind(*args, **kwargs).arguments
        cuda_sources = sources_of(call.pop("cuda_sources", None))
        if not cuda_sources:
            return original(**call)
        use_compiler()
        tally.host("builds", "load_inline")
        cell = cell_of_caller()
        headers = [] if call.get("no_implicit_headers") else ["#include <torch/extension.h>"]
        nvccs = call.pop("extra_cuda_cflags", None) or []
        words = _after_the_shell(nvccs)
        call["cpp_sources"] = [
            '#include "cuda_on_cpu.h"',
            *headers,
            *macros_of(words),
            *(_translated(source, "cpp_source", cell) for source in sources_of(call.get("cpp_sources"))),
            *(_translated(source, "cuda_source", cell) for source in cuda_sources),
            '#line 1 "binding"',
        ]
        call["no_implicit_headers"] = True
        cuda_flags = [flag for flag in nvccs if flag.startswith(_KEPT_CUDA_FLAGS)]
        with_torch = bool(headers) or any(_TORCH.search(source) for source in call["cpp_sources"])
        flags = flags_with_torch() if with_torch else COMPILER_FLAGS
        parts = Parts([], [str(INCLUDE)], []) if with_torch else header_parts()
        flags = [*flags, *parts.flags, *_TORCHS_CUDA_FLAGS, *cuda_flags]
        call["extra_cflags"] = [*(call.get("extra_cflags") or []), *flags]
        call["extra_include_paths"] = [*parts.include, *(call.get("extra_include_paths") or [])]
        libraries = [flag for flag in call.get("extra_ldflags") or [] if not flag.startswith(_DROPPED_LIBRARIES)]
        call["extra_ldflags"] = [*libraries, *parts.objects]
        call["with_cuda"] = False
        for source in cuda_sources:
            cuda_compiled.start(source, cell, words)
        try:
            extension = original(**call)
        except RuntimeError as error:
            if what := lacking(str(error)):
                raise NotSimulated(what, place_of_error(str(error))) from None
            raise
        watch(extension)
        return extension

    return load_inline


def _after_the_shell(flags: Sequence[str]) -> list[str]:
    """Return the flags as nvcc gets them: PyTorch passes them through a shell, which removes quotes."""
    try:
        return shlex.split(" ".join(flags))
    except ValueError:  # a quote is not closed
        return list(flags)


def _translated(source: str, name: str, cell: str) -> str:
    return line_mark(source, name, cell) + translate(source)


def use_arguments(function: Callable[..., Any], tensors: Sequence[Any], read_only: Sequence[bool]) -> None:
    """Let CUDA C++ report accesses outside of these tensors, by the names of the function's parameters."""
    names = names_of(_written(function))
    if len(names) != len(tensors):
        names = [f"argument {number}" for number in range(1, len(tensors) + 1)]
    buffers = []
    for tensor, closed, name in zip(tensors, read_only, names, strict=True):
        item = tensor.element_size()
        buffers.append(Buffer(tensor.data_ptr(), _span(tensor) * item, GUARD_BYTES, item, closed, name.encode()))
    use_buffers(buffers)


def size_grids_as_on_a_gpu(function: Callable[..., Any]) -> None:
    """Let the `sm_count` of a cell with CUDA C++ return an H100's 132 SMs.

    The notebooks' own version returns 4 without a GPU. No kernel has more partial sums than threads then.
    """
    written = _written(function)
    space = getattr(getattr(written, "func", written), "__globals__", {})
    if callable(space.get("sm_count")) and "triton" not in space:
        space["sm_count"] = lambda device: triton_gpu.MULTIPROCESSORS


def _written(function: Callable[..., Any]) -> Callable[..., Any]:
    """The submission's function, without the harness around it."""
    while isinstance(function, functools.partial) and function.args and callable(function.args[0]):
        function = function.args[0]
    return function


def _span(tensor: Any) -> int:
    return 1 + sum((int(n) - 1) * int(step) for n, step in zip(tensor.shape, tensor.stride(), strict=True))


def take_first() -> None:
    """Let every autotuner without its own clock take its first configuration, because nothing can be timed here.

    An autotuner's own clock runs each configuration once. In its other runs it measures a pause of a millisecond.
    """
    from triton.runtime.autotuner import Autotuner

    def untimed(tuner: Any) -> Any:
        triton_log.will_tune(tuner)
        return lambda call, quantiles: [0.0] * len(quantiles)

    def timed(tuner: Any) -> Any:
        def bench(call: Callable[[], Any], *how: Any, **named: Any) -> Any:
            pause: Callable[[], Any] = functools.partial(time.sleep, 1e-3)
            runs = itertools.chain([call], itertools.repeat(pause))
            return tuner._do_bench(lambda: next(runs)(), *how, **named)

        return bench

    def clock(tuner: Any) -> Any:
        old_ways = ("num_warmups", "num_reps", "use_cuda_graph")  # to ask for Triton's own clock
        own = tuner._do_bench and not any(getattr(tuner, name, None) for name in old_ways)
        return timed(tuner) if own else untimed(tuner)

    Autotuner.do_bench = property(clock)
