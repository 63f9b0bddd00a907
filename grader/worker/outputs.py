"""Copy the tensor that a submission returns into the judge's buffer, and guard the memory that it allocates.

The copy is timed, for submissions and baselines alike, so none may avoid it. A subclass of `torch.Tensor` could defer
its work until it is copied, and a result that already is in the buffer needs no copy: both are refused. The functions
that check this are bound when the module is imported, before there is a submission.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import full

from grader.protocol.arena import POISON_BYTE

_functions: weakref.WeakKeyDictionary[CallOnly, Callable[..., Any]] = weakref.WeakKeyDictionary()


class CallOnly:
    """A callable that hides its function: it has no closure and no attribute to inspect."""

    __slots__ = ("__weakref__",)
    __name__ = "function"

    def __init__(self, function: Callable[..., Any]) -> None:
        _functions[self] = function

    def __call__(self, *args: Any) -> Any:
        return _functions[self](*args)


_GUARD_BYTES = 16 << 10  # more than a block of 1024 threads can write past the end
_EMPTY = ("empty", "empty_like", "empty_strided")
_ZEROS = ("zeros", "zeros_like")
_METHODS = ("new_empty", "new_zeros")


@contextlib.contextmanager
def guarded(enabled: bool = True) -> Iterator[Callable[[], bool]]:
    """Within it, `torch.empty` and similar functions return tensors filled with poison, with guards around them.

    It yields a function that tells whether a guard was overwritten. Tensors without floating-point numbers, and tensors
    that C++ code allocates, are made as usual.
    """
    made: list[tuple[Any, int]] = []

    def around(function: Callable[..., Any], zeros: bool) -> Callable[..., Any]:
        def make(*args: Any, **kwargs: Any) -> Any:
            plain = function(*args, **kwargs)
            # torch.compile calls this for fake or meta tensors, which have no memory.
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
        guards = (part for raw, size in made for part in (raw[:_GUARD_BYTES], raw[_GUARD_BYTES + size :]))
        return any(bool((part != POISON_BYTE).any()) for part in guards)

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


_type, _Tensor, _current_stream = type, torch.Tensor, torch.cuda.current_stream
_Base: Any = torch._C.TensorBase  # a C type: its methods cannot be replaced
_function_modes, _dispatch_modes = torch._C._len_torch_function_stack, torch._C._len_torch_dispatch_stack
try:
    from cuda.bindings import driver

    _memcpy = driver.cuMemcpyDtoDAsync  # torch's own copy can be overridden in its dispatcher
except ImportError:  # no GPU, so nothing is timed
    _memcpy = None


class NotATensor(TypeError):
    """The function did not return a plain tensor of the required shape and data type."""


def must_be_like(out: Any, result: Any) -> None:
    """Raise `NotATensor` unless `result` is a plain tensor with the shape, data type and device of `out`."""
    if not isinstance(result, _Tensor):
        raise NotATensor(f"the function must return a tensor, not {_type(result).__name__}")
    if _type(result) is not _Tensor:
        raise NotATensor(f"the function must return a plain torch.Tensor, not its subclass {_type(result).__name__}")
    if result.shape != out.shape:
        raise NotATensor(f"the result has the shape {tuple(result.shape)}; it must be {tuple(out.shape)}")
    if result.dtype != out.dtype:
        raise NotATensor(f"the result is {result.dtype}; it must be {out.dtype}")
    if result.device != out.device:
        raise NotATensor(f"the result is on {result.device}; it must be on {out.device}")
    if result.layout != torch.strided:
        raise NotATensor(f"the result has the layout {result.layout}; it must be {torch.strided}")


def copy_out(result: Any, out: Any) -> None:
    """Copy a function's result to `out`, the judge's buffer, on torch's current stream.

    Raises:
        NotATensor: `result` is not a plain tensor like `out` with its own memory.
    """
    if _type(out) is not _Tensor or _function_modes() or _dispatch_modes():
        raise NotATensor("the function changed how torch handles tensors, and did not change it back")
    must_be_like(out, result)
    if not _Base.is_contiguous(out):  # never in a timed case
        _Base.copy_(out, result)
        return
    result = result.resolve_neg().contiguous()  # usually the result itself
    must_be_like(out, result)
    start, own_start, size = _Base.data_ptr(result), _Base.data_ptr(out), out.numel() * out.element_size()
    if not _Base.is_contiguous(result) or -size < start - own_start < size:
        raise NotATensor("the result is in the grader's own buffer: return a tensor that the function allocated")
    if out.is_cuda and _memcpy is not None:
        (error,) = _memcpy(own_start, start, size, _current_stream().cuda_stream)
        if error:
            raise RuntimeError(f"CUDA error: the result could not be copied: {error}")
    else:
        _Base.copy_(out, result)
