"""The tensor that a submission returns, and its way into the arbiter's buffer.

The copy is part of what is timed, for submission and baselines alike, so nobody may be spared it: a subclass of
`torch.Tensor` could compute only when it is copied, and a result that lies in the buffer already needs no copy.
What decides that is bound when the module is imported, before there is a submission.
"""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["NotATensor", "copy_out", "must_be_like"]

_type, _Tensor, _current_stream = type, torch.Tensor, torch.cuda.current_stream
_Base: Any = torch._C.TensorBase  # a type of C: nobody can replace its methods
_function_modes, _dispatch_modes = torch._C._len_torch_function_stack, torch._C._len_torch_dispatch_stack
try:
    from cuda.bindings import driver

    _memcpy = driver.cuMemcpyDtoDAsync  # torch's own copying can be overridden in its dispatcher
except ImportError:  # without a GPU, where nothing is timed
    _memcpy = None


class NotATensor(TypeError):
    """The function returned something else than a plain tensor of the shape and data type that are asked for."""


def must_be_like(out: Any, result: Any) -> None:
    """Accepts a plain tensor of the shape, data type and device of `out`.

    Raises:
        NotATensor: `result` is something else.
    """
    if not isinstance(result, _Tensor):
        raise NotATensor(f"a tensor is to be returned, not {_type(result).__name__}")
    if _type(result) is not _Tensor:
        raise NotATensor(f"a plain torch.Tensor is to be returned, not its subclass {_type(result).__name__}")
    if result.shape != out.shape:
        raise NotATensor(f"the result has the shape {tuple(result.shape)}; {tuple(out.shape)} is asked for")
    if result.dtype != out.dtype:
        raise NotATensor(f"the result is {result.dtype}; {out.dtype} is asked for")
    if result.device != out.device:
        raise NotATensor(f"the result is on {result.device}; {out.device} is asked for")
    if result.layout != torch.strided:
        raise NotATensor(f"the result has the layout {result.layout}; {torch.strided} is asked for")


def copy_out(result: Any, out: Any) -> None:
    """Copies what a function returned to `out`, the arbiter's buffer, on torch's current stream.

    Raises:
        NotATensor: `result` is no plain tensor like `out`, with memory of its own.
    """
    if _type(out) is not _Tensor or _function_modes() or _dispatch_modes():
        raise NotATensor("the function changed how torch handles tensors, and did not change it back")
    must_be_like(out, result)
    if not _Base.is_contiguous(out):  # in no case that is timed
        _Base.copy_(out, result)
        return
    result = result.resolve_neg().contiguous()  # the result itself where there is nothing to do
    must_be_like(out, result)
    start, own_start, size = _Base.data_ptr(result), _Base.data_ptr(out), out.numel() * out.element_size()
    if not _Base.is_contiguous(result) or -size < start - own_start < size:
        raise NotATensor("the result lies in the grader's own buffer: return a tensor that the function has made")
    if out.is_cuda and _memcpy is not None:
        (error,) = _memcpy(own_start, start, size, _current_stream().cuda_stream)
        if error:
            raise RuntimeError(f"CUDA error: the result could not be copied: {error}")
    else:
        _Base.copy_(out, result)
