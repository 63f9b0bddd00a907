"""Work to be timed: operations of torch by their description, and functions of unknown duration for a learner's timer.

Data describe such a function. For the pretend GPU: `{"first_ms": 60, "virtual": [[480, 40], …]}`, with the megabytes
and GB/s of each kernel, and `"outlier": 1.15` if every fifth call takes that many times as long. For a real GPU:
`{"first_ms": 60, "operation": "add", "size": …, "launches": …}`.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

from grader.worker.outputs import CallOnly
from grader.worker.simulator import virtual_gpu

OPERATIONS = {"add": 2, "negate": 1, "sum": 1, "multiply": 2}  # with the number of their inputs
_REPEATS = 20
_WARM_UP_S = 0.1  # an idle GPU needs this long to raise its clocks


def call_of(operation: Mapping[str, Any], device: str) -> Callable[[], Any]:
    """Return a function that runs the operation once, on preallocated tensors on `device`.

    The tensors hold random numbers, as when a machine's ceiling is measured, because a GPU's power, and so its clock,
    depends on the data.
    """
    import torch

    kind, dtype = operation["kind"], getattr(torch, operation["dtype"])

    def full(*shape: int) -> torch.Tensor:
        return torch.randn(shape, dtype=dtype, device=device)

    if kind == "matmul":
        batch, m, n, k = (operation[name] for name in ("batch", "m", "n", "k"))
        a, b = full(batch, m, k), full(batch, k, n)
        c = a.new_empty(batch, m, n)
        if batch == 1:
            return lambda: torch.mm(a[0], b[0], out=c[0])
        return lambda: torch.bmm(a, b, out=c)
    shape = operation["shape"]
    x = full(*shape)
    if kind == "sum":
        return lambda: x.sum()
    out = torch.empty(shape, dtype=getattr(torch, operation.get("to", operation["dtype"])), device=device)
    if kind in ("add", "add_row"):
        other = full(*shape) if kind == "add" else full(shape[-1])
        return lambda: torch.add(x, other, out=out)
    if kind == "relu":
        return lambda: torch.clamp_min(x, 0, out=out)
    return lambda: out.copy_(x)  # copy, convert


def time_on_gpu(operation: Mapping[str, Any]) -> float:
    """Return the operation's milliseconds on this GPU: the median of some calls, by events, after a warm-up.

    The L2 cache is not emptied in between, so use this for operations that move far more than it holds.
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


def callable_of(description: Mapping[str, Any]) -> Callable[[], None]:
    """Return the described function. With `virtual` the pretend GPU is installed in this process.

    The first call takes at least `first_ms` on the host: it allocates the tensors. It keeps a real GPU busy meanwhile,
    so that the clock does not fall.
    """
    make = _virtual if "virtual" in description else _real
    launches: list[Callable[[], Any]] = []

    def function() -> None:
        if not launches:
            ends = time.monotonic() + description["first_ms"] / 1e3
            launches.extend(make(description))
            while "virtual" not in description and time.monotonic() < ends:
                _run_all(launches)
            time.sleep(max(0.0, ends - time.monotonic()))
        for launch in launches:
            launch()

    if "virtual" in description:
        virtual_gpu.install()
    return CallOnly(function)


def _run_all(launches: list[Callable[[], Any]]) -> None:
    import torch

    for launch in launches:
        launch()
    torch.cuda.synchronize()


def _virtual(description: Mapping[str, Any]) -> list[Callable[[], Any]]:
    factors = (description.get("outlier", 1.0), 1.0, 1.0, 1.0, 1.0)  # so calls 1, 6 and 11 are outliers

    def kernel(ms: float) -> Callable[[], None]:
        factor = itertools.cycle(factors)
        return lambda: virtual_gpu.launch(ms * next(factor))

    return [kernel(megabytes / gbps) for megabytes, gbps in description["virtual"]]


def _real(description: Mapping[str, Any]) -> list[Callable[[], Any]]:
    """Make the launches of one operation, on zeros: with random numbers a GPU slows down the longer it runs."""
    import torch

    operation, size = description["operation"], description["size"]
    shape, dtype = ((size, size), torch.float16) if operation == "multiply" else ((size,), torch.float32)
    inputs = [torch.zeros(shape, dtype=dtype, device="cuda") for _ in range(OPERATIONS[operation])]
    out = torch.zeros(() if operation == "sum" else shape, dtype=dtype, device="cuda")
    functions: dict[str, Callable[..., Any]] = {
        "add": torch.add, "negate": torch.neg, "multiply": torch.mm, "sum": functools.partial(torch.sum, dim=0),
    }  # fmt: skip
    function = functions[operation]
    return [lambda: function(*inputs, out=out)] * int(description["launches"])
