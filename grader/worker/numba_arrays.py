"""Torch tensors as Numba's device arrays: the same memory, nothing copied. Where there is no GPU, Numba's simulator."""

from __future__ import annotations

import os
from typing import Any

__all__ = ["device_arrays"]

_MOST = 1024  # tensors of a job, launches times arguments
_made: dict[tuple[Any, ...], Any] = {}  # what Numba takes to look at a tensor is no part of a submission's time


def device_arrays(*tensors: Any) -> list[Any]:
    """A device array for each tensor; tensors of a GPU are used on the stream that Numba has by default, torch's too.

    In the simulator an array over memory that can only be read refuses to be written, as a GPU would.
    """
    if len(_made) > _MOST:
        _made.clear()
    return [_device_array(tensor) for tensor in tensors]


def _device_array(tensor: Any) -> Any:
    key = (tensor.data_ptr(), tuple(tensor.shape), tensor.dtype)
    if key not in _made:
        _made[key] = _simulated(tensor) if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1" else _on_gpu(tensor)
    return _made[key]


def _on_gpu(tensor: Any) -> Any:
    from numba import cuda

    return cuda.as_cuda_array(tensor, sync=False)


def _simulated(tensor: Any) -> Any:
    from grader.worker.numba_on_cpu import array

    return array(tensor)
