"""Work of unknown duration, for a learner's timer: a function that takes nothing, gives nothing and keeps a GPU busy.

Data describe what it does. For the pretend GPU: `{"first_ms": 60, "virtual": [[480, 40], …]}`, megabytes, and the GB/s
at which they are moved. For a real one: `{"first_ms": 60, "operation": "add", "size": …, "launches": …}`.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

from grader.worker.outputs import CallOnly
from grader.worker.simulator import virtual_gpu

# Operations that an exercise describes, as calls of torch that can be timed.

_REPEATS = 20
_WARM_UP_S = 0.1  # an idle GPU takes so long to raise its clocks


def call_of(operation: Mapping[str, Any], device: str) -> Callable[[], Any]:
    """What runs the operation once, with its tensors allocated on `device` and its result written to one of them.

    The tensors hold ones, as those have that a machine's ceiling is measured with: power, and so the clock of a GPU,
    depends on the data.
    """
    import torch

    kind, dtype = operation["kind"], getattr(torch, operation["dtype"])

    def full(*shape: int, of: torch.dtype = dtype) -> torch.Tensor:
        return torch.ones(shape, dtype=of, device=device)

    if kind == "matmul":
        batch, m, n, k = (operation[name] for name in ("batch", "m", "n", "k"))
        a, b, c = full(batch, m, k), full(batch, k, n), full(batch, m, n)
        if batch == 1:
            return lambda: torch.mm(a[0], b[0], out=c[0])
        return lambda: torch.bmm(a, b, out=c)
    shape = operation["shape"]
    x = full(*shape)
    if kind == "sum":
        return lambda: x.sum()
    out = full(*shape, of=getattr(torch, operation.get("to", operation["dtype"])))
    if kind in ("add", "add_row"):
        other = full(*shape) if kind == "add" else full(shape[-1])
        return lambda: torch.add(x, other, out=out)
    if kind == "relu":
        return lambda: torch.clamp_min(x, 0, out=out)
    return lambda: out.copy_(x)  # copy, convert


def time_on_gpu(operation: Mapping[str, Any]) -> float:
    """Milliseconds of the operation on this GPU, by events: the median of some calls, once its clocks are up.

    Nothing empties the L2 cache in between: ask about operations that move far more than it holds.
    """
    import torch

    call = call_of(operation, "cuda")
    until = time.perf_counter() + _WARM_UP_S
    while time.perf_counter() < until:
        call()
        torch.cuda.synchronize()
    make: Any = torch.cuda.Event
    marks = []
    for _ in range(_REPEATS):
        start, end = make(enable_timing=True), make(enable_timing=True)
        start.record()
        call()
        end.record()
        marks.append((start, end))
    torch.cuda.synchronize()
    del call
    torch.cuda.empty_cache()
    return float(median(start.elapsed_time(end) for start, end in marks))


# Work of unknown duration, for a learner's timer: a function that takes nothing, gives nothing and keeps a GPU busy.
#
# Data describe what it does. For the pretend GPU: `{"first_ms": 60, "virtual": [[480, 40], …]}`, megabytes, and the GB/s
# at which they are moved. For a real one: `{"first_ms": 60, "operation": "add", "size": …, "launches": …}`.


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
