"""Count the calls of PyTorch at which the CPU would wait for a GPU, on a machine without one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from unittest.mock import patch

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from grader.worker.evidence import needs_a_value
from grader.worker.outputs import NotATensor
from grader.worker.simulator import devices, start, virtual_gpu
from grader.worker.toolchain import forked

_METHODS = frozenset({torch.Tensor.cpu, torch.Tensor.numpy, torch.Tensor.tolist, torch.Tensor.__repr__})


def count_waits(entry: Callable[..., Any], rows: int, *tensors: Any) -> Any:
    """Return `entry(*tensors)`. For tensors of the CPU, note how often a call fetches a value or synchronizes.

    The note is a fact about the submission, with the number of `rows`. On a GPU nothing is counted.
    """
    if tensors[0].is_cuda:
        return entry(*tensors)
    counts = [0]

    def waiting(*_: Any) -> None:
        counts[0] += 1

    everything, one_event = (patch.object(each, "synchronize", waiting) for each in (start, virtual_gpu.Event))
    with everything, one_event, _Methods(counts), _Operators(counts), devices.watching(*tensors):
        result = entry(*tensors)
    if devices.device_of(result) == devices.CPU:
        raise NotATensor("the result is on cpu; it must be on cuda:0")
    forked.facts.append({"rows": rows, "waits": counts[0]})
    return result


class _Methods(TorchFunctionMode):
    """Counts copies to the CPU, which do nothing to a tensor that is there."""

    def __init__(self, counts: list[int]) -> None:
        super().__init__()
        self._counts = counts

    def __torch_function__(
        self, function: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        moves = function is torch.Tensor.to and "cpu" in (*args[1:], *(kwargs or {}).values())
        self._counts[0] += function in _METHODS or moves
        return function(*args, **(kwargs or {}))


class _Operators(TorchDispatchMode):
    """Counts operators that need a value, or a shape that depends on one, at once."""

    def __init__(self, counts: list[int]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._counts = counts

    def __torch_dispatch__(
        self, function: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        self._counts[0] += needs_a_value(function, args)
        return function(*args, **(kwargs or {}))
