"""Operations that an exercise describes, as calls of torch that can be timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

__all__ = ["call_of", "time_on_gpu"]

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
