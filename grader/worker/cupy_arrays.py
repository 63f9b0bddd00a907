"""The judge's tensors as CuPy's arrays, uncopied; the work goes onto torch's current stream."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

__all__ = ["call_with_arrays", "device_arrays"]

_MOST = 1024  # tensors of a job, launches times arguments
_made: dict[tuple[Any, ...], Any] = {}  # what CuPy takes to look at a tensor is no part of a submission's time


def device_arrays(*tensors: Any) -> list[Any]:
    """Arrays over the same memory, of the GPU or, in the simulator, of the host."""
    if len(_made) > _MOST:
        _made.clear()
    return [_device_array(tensor) for tensor in tensors]


def call_with_arrays(entry: Callable[..., Any], *tensors: Any) -> None:
    """Calls `entry` with arrays over the tensors, CuPy's current stream being torch's."""
    with _on_torchs_stream(tensors[0]):
        entry(*device_arrays(*tensors))


def _device_array(tensor: Any) -> Any:
    key = (tensor.data_ptr(), tuple(tensor.shape), tensor.dtype)
    if key not in _made:
        import cupy

        _made[key] = cupy.asarray(tensor)
    return _made[key]


def _on_torchs_stream(tensor: Any) -> contextlib.AbstractContextManager[Any]:
    import torch

    pointer = torch.cuda.current_stream().cuda_stream if tensor.is_cuda else 0
    if not pointer:  # the stream that is CuPy's own, too
        return contextlib.nullcontext()
    import cupy

    stream: contextlib.AbstractContextManager[Any] = cupy.cuda.ExternalStream(pointer)
    return stream
