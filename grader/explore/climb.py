"""A learner's rungs side by side: the first call, a later call, registers, speed-up over SciPy, error."""

from __future__ import annotations

import linecache
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

from grader.exercise import Case
from grader.exercises.ladder import FREQUENCIES, SAMPLES, draw, ladder_case, oracle
from grader.judge.inputs import generator

__all__ = ["Climb", "Rung", "climb_cupy", "measure", "scipy_ms"]

_REPEATS = 20
_ERRORS = "Errors are shares of the number of samples."
_KEPT = " A first call compiles only what CuPy has not yet compiled, in this notebook or before."
_SMALL = (70, 259)  # samples and frequencies where there is no GPU
_OF_SCIPY = 1 << 9  # frequencies that are timed; SciPy's time grows with their number


@dataclass(frozen=True)
class Rung:
    """One row. What was not measured is None; `note` says why a rung has nothing at all."""

    name: str
    first_call_ms: float | None = None
    median_ms: float | None = None
    registers: int | None = None
    speedup: float | None = None
    error: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Climb:
    """The table, and what it was measured on."""

    rungs: tuple[Rung, ...]
    origin: str

    def rung(self, name: str) -> Rung:
        """The row of this name."""
        return next(rung for rung in self.rungs if rung.name == name)

    def _table(self) -> list[list[str]]:
        timed = any(rung.median_ms is not None for rung in self.rungs)
        head = [
            "rung",
            *(["first call, ms", "later, ms", "registers", "times as fast as SciPy"] if timed else []),
            "error",
        ]
        body = []
        for rung in self.rungs:
            times = [
                _number(rung.first_call_ms, ",.1f"),
                _number(rung.median_ms, ",.3g"),
                _number(rung.registers, "d"),
                _number(rung.speedup, ",.0f"),
            ]
            body.append(
                [rung.name.replace("_", " "), *(times if timed else []), rung.note or _number(rung.error, ".1e")]
            )
        return [head, *body]

    def __repr__(self) -> str:
        table = self._table()
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ("  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)) for row in table)
        return "\n".join([*lines, self.origin])

    def _repr_html_(self) -> str:
        head, *body = self._table()
        lines = ["<tr>" + "".join(f"<th>{escape(text)}</th>" for text in head) + "</tr>"]
        lines += ["<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in body]
        return f"<table>{''.join(lines)}</table><p>{escape(self.origin)}</p>"


def climb_cupy(**rungs: Callable[..., None]) -> Climb:
    """Call each function on the same samples. With a GPU all is measured; without one, the error alone, on few samples.

    The error is the largest, as a share of the number of samples, against a power that was computed in float64. Each
    function runs with the names of its own cell, as it is graded: several cells may each have a `source` or `kernels`.
    """
    import torch

    from grader.worker.cupy_arrays import device_arrays

    on_gpu = torch.cuda.is_available()
    samples, count = (SAMPLES, FREQUENCIES) if on_gpu else _SMALL
    case = ladder_case(samples, count)
    tensors = _tensors(case, "cuda" if on_gpu else "cpu")
    expected = oracle({name: tensors[name].double() for name in ("t", "y", "freqs")})
    slow_ms = scipy_ms(tensors) if on_gpu else None
    found = tuple(
        _rung(name, _alone(function), device_arrays(*tensors.values()), tensors["out"], expected, slow_ms)
        for name, function in rungs.items()
    )
    where = torch.cuda.get_device_name() if on_gpu else "this machine's CPU: nothing is timed without a GPU"
    return Climb(found, f"{case.name}, float32, on {where}.{_KEPT if on_gpu else ''} {_ERRORS}")


def _alone(function: Callable[..., None]) -> Callable[..., None]:
    """The function as its cell alone defines it; as it is where there is no text of a cell."""
    code = getattr(function, "__code__", None)
    if code is None or function.__module__ != "__main__" or not (lines := linecache.getlines(code.co_filename)):
        return function
    namespace: dict[str, Any] = {"__name__": "__main__"}
    try:
        exec(compile("".join(lines), code.co_filename, "exec"), namespace)  # the learner's own cell, once more
    except Exception:
        return function
    return namespace.get(function.__name__, function)  # type: ignore[no-any-return]


def measure(call: Callable[[], Any]) -> tuple[float, float]:
    """The first call and the median of later ones, in ms, on the GPU's current stream."""
    import torch

    torch.cuda.synchronize()
    begun = time.perf_counter()
    call()
    torch.cuda.synchronize()
    first_ms = 1e3 * (time.perf_counter() - begun)
    make: Any = torch.cuda.Event
    times = []
    for _ in range(_REPEATS):
        start, end = make(enable_timing=True), make(enable_timing=True)
        start.record()
        call()
        end.record()
        end.synchronize()
        times.append(float(start.elapsed_time(end)))
    return first_ms, sorted(times)[len(times) // 2]


def scipy_ms(tensors: dict[str, Any]) -> float:
    """What SciPy takes on this CPU for all frequencies, from a few of them: its time grows with their number."""
    from scipy.signal import lombscargle

    t, y, freqs = (tensors[name].double().cpu().numpy() for name in ("t", "y", "freqs"))
    begun = time.perf_counter()
    lombscargle(t, y, freqs[:_OF_SCIPY])
    return 1e3 * (time.perf_counter() - begun) * len(freqs) / _OF_SCIPY


def _tensors(case: Case, device: str) -> dict[str, Any]:
    import torch

    tensors = dict(draw(case, generator(device), None))
    return tensors | {"out": torch.full_like(tensors["freqs"], math.nan)}


def _rung(
    name: str, function: Callable[..., None], arrays: list[Any], out: Any, expected: Any, slow_ms: float | None
) -> Rung:
    out.fill_(math.nan)
    try:
        times = measure(lambda: function(*arrays)) if out.is_cuda else None
        if times is None:
            function(*arrays)
    except NotImplementedError:
        return Rung(name, note="not written yet")
    except Exception as raised:  # a learner's, whose own cell and report say more
        return Rung(name, note=f"raises {type(raised).__name__}")
    error = float((out.double() - expected).abs().max()) / arrays[0].size
    if times is None or slow_ms is None:
        return Rung(name, error=error)
    return Rung(name, *times, _registers(function), slow_ms / times[1], error)


def _registers(function: Callable[..., None]) -> int | None:
    """Those of the first kernel that the function's cell keeps in `kernels`; None where it keeps none."""
    kernels = getattr(function, "__globals__", {}).get("kernels")
    for kept in kernels.values() if isinstance(kernels, dict) else ():
        for kernel in kept if isinstance(kept, tuple | list) else (kept,):
            if isinstance(count := getattr(kernel, "num_regs", None), int):
                return count
    return None


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
