"""Memory that a submission makes for its own results, poisoned and with guards around, as the arbiter's buffers are."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import full

from grader.protocol.layout import POISON_BYTE

__all__ = ["guarded"]

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
