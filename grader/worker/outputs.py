"""The tensor that a submission returns, and its way into the arbiter's buffer.

The copy is part of what is timed, for submission and baselines alike, so nobody may be spared it: a subclass of
`torch.Tensor` could compute only when it is copied, and a result that lies in the buffer already needs no copy.
What decides that is bound when the module is imported, before there is a submission.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import full

from grader.protocol.arena import POISON_BYTE

# A function that can be called, and that has nothing else to find: what it does is kept elsewhere.

_functions: weakref.WeakKeyDictionary[CallOnly, Callable[..., Any]] = weakref.WeakKeyDictionary()


class CallOnly:
    """Calls the function that it was made of. It has no closure, no attribute and no argument of that function."""

    __slots__ = ("__weakref__",)
    __name__ = "function"

    def __init__(self, function: Callable[..., Any]) -> None:
        _functions[self] = function

    def __call__(self, *args: Any) -> Any:
        return _functions[self](*args)


# Memory that a submission makes for its own results, poisoned and with guards around, as the arbiter's buffers are.

_GUARD_BYTES = 16 << 10  # more than a block of 1024 threads can write past the end
_EMPTY = ("empty", "empty_like", "empty_strided")
_ZEROS = ("zeros", "zeros_like")
_METHODS = ("new_empty", "new_zeros")


@contextlib.contextmanager
def guarded(enabled: bool = True) -> Iterator[Callable[[], bool]]:
    """Within it, `torch.empty` and its kin give tensors that hold poison. Gives a function: was one overrun?

    It replaces names of torch in this process, and puts them back. Tensors that are not of floating point, and those
    that only C++ asks for, are made as ever.
    """
    made: list[tuple[Any, int]] = []

    def around(function: Callable[..., Any], zeros: bool) -> Callable[..., Any]:
        def make(*args: Any, **kwargs: Any) -> Any:
            plain = function(*args, **kwargs)
            # torch.compile asks with fake or meta tensors, which have no memory
            real = type(plain) is torch.Tensor and plain.device.type != "meta"
            if not real or not plain.is_floating_point() or not plain.numel():
                return plain
            spans = ((n - 1) * stride for n, stride in zip(plain.shape, plain.stride(), strict=True))
            size = (1 + sum(spans)) * plain.element_size()
            length = (size + 2 * _GUARD_BYTES,)
            raw = full(length, POISON_BYTE, dtype=torch.uint8, device=plain.device)
            made.append((raw, size))
            offset = _GUARD_BYTES // plain.element_size()
            plain.set_(raw.untyped_storage(), offset, plain.shape, plain.stride())
            return plain.zero_() if zeros else plain

        return make

    def overruns() -> bool:
        beside = (part for raw, size in made for part in (raw[:_GUARD_BYTES], raw[_GUARD_BYTES + size :]))
        return any(bool((part != POISON_BYTE).any()) for part in beside)

    if not enabled:
        yield overruns
        return
    names = [(torch, name) for name in (*_EMPTY, *_ZEROS)] + [(torch.Tensor, name) for name in _METHODS]
    before = [(owner, name, getattr(owner, name), name in vars(owner)) for owner, name in names]
    try:
        for owner, name, function, _ in before:
            setattr(owner, name, around(function, "zeros" in name))
        yield overruns
    finally:
        for owner, name, function, own in before:
            if own:
                setattr(owner, name, function)
            else:
                delattr(owner, name)


# The tensor that a submission returns, and its way into the arbiter's buffer.
#
# The copy is part of what is timed, for submission and baselines alike, so nobody may be spared it: a subclass of
# `torch.Tensor` could compute only when it is copied, and a result that lies in the buffer already needs no copy.
# What decides that is bound when the module is imported, before there is a submission.

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
