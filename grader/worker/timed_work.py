"""Work of unknown duration, for a learner's timer: a function that takes nothing, gives nothing and keeps a GPU busy.

Data describe what it does. For the pretend GPU: `{"first_ms": 60, "virtual": [[480, 40], …]}`, megabytes, and the GB/s
at which they are moved. For a real one: `{"first_ms": 60, "operation": "add", "size": …, "launches": …}`.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from typing import Any

from grader.worker import virtual_gpu
from grader.worker.call_only import CallOnly

__all__ = ["OPERATIONS", "callable_of"]


def callable_of(description: Mapping[str, Any]) -> Callable[[], None]:
    """The function. Its first call takes at least `first_ms` on the host: it makes its tensors, and keeps a real GPU at
    work meanwhile, so that no clock falls.

    A description with `virtual` installs the pretend GPU in this process.
    """
    make = _virtual if "virtual" in description else _real
    launches: list[Callable[[], Any]] = []

    def function() -> None:
        if not launches:
            ends = time.monotonic() + description["first_ms"] / 1e3
            launches.extend(make(description))
            while "virtual" not in description and time.monotonic() < ends:
                _at_work(launches)
            time.sleep(max(0.0, ends - time.monotonic()))
        for launch in launches:
            launch()

    if "virtual" in description:
        virtual_gpu.install()
    return CallOnly(function)


def _at_work(launches: list[Callable[[], Any]]) -> None:
    import torch

    for launch in launches:
        launch()
    torch.cuda.synchronize()


def _virtual(description: Mapping[str, Any]) -> list[Callable[[], Any]]:
    return [
        functools.partial(virtual_gpu.launch, megabytes / gbps)  # milliseconds
        for megabytes, gbps in description["virtual"]
    ]


def _real(description: Mapping[str, Any]) -> list[Callable[[], Any]]:
    return [OPERATIONS[description["operation"]](description["size"])] * int(description["launches"])


# Zeros throughout: a product of random numbers takes so much power that a GPU slows down, the more the longer it runs.


def _add(size: int) -> Callable[[], Any]:
    import torch

    x, y, out = (torch.zeros(size, device="cuda") for _ in range(3))
    return lambda: torch.add(x, y, out=out)


def _sum(size: int) -> Callable[[], Any]:
    import torch

    x, out = torch.zeros(size, device="cuda"), torch.zeros((), device="cuda")
    return lambda: torch.sum(x, dim=0, out=out)


def _negate(size: int) -> Callable[[], Any]:
    import torch

    x, out = (torch.zeros(size, device="cuda") for _ in range(2))
    return lambda: torch.neg(x, out=out)


def _multiply(size: int) -> Callable[[], Any]:
    import torch

    a, b, out = (torch.zeros(size, size, dtype=torch.float16, device="cuda") for _ in range(3))
    return lambda: torch.mm(a, b, out=out)


OPERATIONS: dict[str, Callable[[int], Callable[[], Any]]] = {
    "add": _add,  # three vectors of float32
    "sum": _sum,  # one
    "negate": _negate,  # two
    "multiply": _multiply,  # three square matrices of float16
}
