"""Scratch tensors that a submission with CUDA C++ makes: kernels may use them, but not the memory around them.

A report names such a tensor by the call that made it, such as `torch.empty(1024, device=x.device)`.
"""

from __future__ import annotations

import functools
import linecache
import weakref
from itertools import islice
from types import CodeType, FrameType
from typing import Any

from grader.worker.simulator import cuda_library
from grader.worker.simulator.cuda_library import Buffer

FACTORIES = frozenset(
    f"{before}{name}{after}"
    for name in ("empty", "zeros", "ones", "full")
    for before, after in (("", ""), ("", "_like"), ("new_", ""))
)
_GUARD_BYTES, _ALIGNED_BYTES = 64 << 10, 256
_NOTHING = 0x7FF9  # in each 16 bits: NaN in every floating-point type
_MOST, _NAME_CHARACTERS = 200, 80
_watches = [False]
_made: dict[int, Buffer] = {}  # by the number of the tensor, while it lives
_counted = 0


def watch() -> None:
    """From now on, let `guard` do its work: the submission has CUDA C++."""
    _watches[0] = True


def guard(tensor: Any, frame: FrameType | None) -> None:
    """Move a tensor for the GPU to memory with guards, and tell the libraries of it.

    `frame`: the submission's, or one of torch that it has called.
    """
    import numpy as np
    import torch

    global _counted
    while frame is not None and "/torch/" in frame.f_code.co_filename:
        frame = frame.f_back
    if not _watches[0] or frame is None or type(tensor) is not torch.Tensor or tensor.layout != torch.strided:
        return
    if not tensor.numel() or tensor.requires_grad or tensor.device.type != "cpu":
        return
    item = tensor.element_size()
    size = (1 + sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))) * item
    raw = np.full((size + 2 * _GUARD_BYTES + _ALIGNED_BYTES) // 2 + 1, _NOTHING, np.uint16).view(np.uint8)
    begin = _GUARD_BYTES + _ALIGNED_BYTES - (raw.ctypes.data + _GUARD_BYTES) % _ALIGNED_BYTES
    content = tensor.clone()
    storage = torch.from_numpy(raw[begin : begin + size]).untyped_storage()  # without the guards, and it keeps them
    tensor.set_(storage, 0, tensor.shape, tensor.stride())
    tensor.copy_(content)
    _counted += 1
    name = _call(frame.f_code, frame.f_lasti).encode()
    _made[_counted] = Buffer(tensor.data_ptr(), size, _GUARD_BYTES, item, False, name)
    weakref.finalize(tensor, _forget, _counted).atexit = False
    _tell()


def _forget(number: int) -> None:
    """Its memory may soon be another tensor's."""
    _made.pop(number, None)
    _tell()


def _tell() -> None:
    cuda_library.use_scratch(list(islice(reversed(_made.values()), _MOST)))


@functools.cache
def _call(code: CodeType, instruction: int) -> str:
    """Return the source of the call that a frame's code is in."""
    first, last, start, end = list(code.co_positions())[instruction // 2]
    lines = [line.encode() for line in linecache.getlines(code.co_filename)[(first or 1) - 1 : last]]
    if not lines:
        return "a tensor"
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start or 0 :]
    text = " ".join(b" ".join(lines).decode(errors="replace").split())
    return text if len(text) <= _NAME_CHARACTERS else f"{text[: _NAME_CHARACTERS - 1]}…"
