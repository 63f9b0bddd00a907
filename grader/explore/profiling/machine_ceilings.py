"""Measure the roofline: the two ceilings of a machine, and the bytes, operations and time of a call below them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from grader.explore.drawing.displays import Table

_COPY_BYTES = {"cuda": 1 << 29, "cpu": 1 << 26}
_PRODUCT_SIZE = {"cuda": 4096, "cpu": 1024}
_BATCH_MS = 2.0  # at least; shorter batches are too short for the clock
_THOROUGH = 21  # batches, for the values that everything else is compared with
_SLEEP_CYCLES = 2_000_000  # about 1 ms, so that the host queues the launches before the GPU starts them


@dataclass(frozen=True)
class Ceilings:
    """The two ceilings of a machine. `tflops` is for a matrix product in `dtype`."""

    machine: str
    bandwidth_gbps: float
    tflops: float
    dtype: str
    origin: str = ""  # where and when it was measured, if not here and now

    @property
    def measured_here(self) -> bool:
        return not self.origin

    @property
    def ridge(self) -> float:
        """The arithmetic intensity (operations per byte) at which the two ceilings meet."""
        return 1e3 * self.tflops / self.bandwidth_gbps

    def roof(self, intensity: float) -> float:
        """The attainable TFLOPS at an arithmetic intensity in operations per byte."""
        return min(intensity * self.bandwidth_gbps / 1e3, self.tflops)

    def as_dict(self) -> dict[str, float]:
        """Return the `machine` argument of the exercise."""
        return {"bandwidth_gbps": self.bandwidth_gbps, "tflops": self.tflops}

    def __repr__(self) -> str:
        flat = f"{rate(self.tflops)}, {self.dtype} matrix product"
        slanted = f"{figures(self.bandwidth_gbps)} GB/s, large copy or addition"
        return "\n".join([self.machine, slanted, flat, self.origin or "Measured now."])


@dataclass(frozen=True)
class Landed:
    """A call: its counted bytes and operations, and its time."""

    name: str
    bytes_moved: float
    operations: float
    ms: float

    @property
    def intensity(self) -> float:
        """Operations per byte."""
        return self.operations / self.bytes_moved

    @property
    def tflops(self) -> float:
        return self.operations / self.ms / 1e9

    @property
    def gbps(self) -> float:
        return self.bytes_moved / self.ms / 1e6

    def __repr__(self) -> str:
        intensity = f"{figures(self.intensity)} operations per byte"
        return f"{self.name}: {intensity}, {figures(self.gbps)} GB/s, {rate(self.tflops)}"


def figures(value: float) -> str:
    """A number with three significant figures: 4,125, 9.14, 0.0833."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def rate(tflops: float) -> str:
    """Operations per second, with a suitable prefix."""
    return f"{figures(tflops)} TFLOPS" if tflops >= 1 else f"{figures(1e3 * tflops)} GFLOPS"


def time_ms(call: Callable[[], Any], batches: int = 7) -> float:
    """Return milliseconds per call: the minimum over batches, since other load can only add time.

    Calls run back to back, so data that fits in a cache stays there. On a GPU, CUDA events measure the time and
    launches are queued ahead, so launch overhead does not count. On a CPU a single thread is timed: with other load on
    the machine, several threads would mostly wait for each other.
    """
    import torch

    on_gpu, threads = torch.cuda.is_available(), torch.get_num_threads()
    batch = _on_gpu if on_gpu else _on_cpu
    if not on_gpu:
        torch.set_num_threads(1)
    try:
        call()
        once = batch(call, 1)
        times = max(1, math.ceil(_BATCH_MS / max(once, 1e-3)))
        return min(batch(call, times) for _ in range(batches))
    finally:
        torch.set_num_threads(threads)


def _on_cpu(call: Callable[[], Any], times: int) -> float:
    start = time.thread_time()
    for _ in range(times):
        call()
    return 1e3 * (time.thread_time() - start) / times


def _on_gpu(call: Callable[[], Any], times: int) -> float:
    import torch

    cuda: Any = torch.cuda  # its functions are untyped
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    cuda._sleep(_SLEEP_CYCLES)
    start.record()
    for _ in range(times):
        call()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / times


def measure_ceilings() -> Ceilings:
    """Measure both ceilings of this machine, on its GPU if it has one. This takes a few seconds.

    The bandwidth is that of a large copy or a large addition, whichever is higher, and counts bytes read and written.
    The arithmetic throughput is that of a matrix product, in float16 on a GPU and in float32 on a CPU. All data is
    random: at its power limit, a GPU multiplies constants faster.
    """
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    elements, size = _COPY_BYTES[device] // 4, _PRODUCT_SIZE[device]
    x, y, out = (torch.randn(elements, device=device) for _ in range(3))
    copy = 8 * elements / time_ms(lambda: out.copy_(x), _THOROUGH) / 1e6
    addition = 12 * elements / time_ms(lambda: torch.add(x, y, out=out), _THOROUGH) / 1e6
    dtype = torch.float16 if device == "cuda" else torch.float32
    a, b, c = (torch.randn(size, size, device=device).to(dtype) for _ in range(3))
    tflops = 2 * size**3 / time_ms(lambda: torch.mm(a, b, out=c), _THOROUGH) / 1e9
    name = torch.cuda.get_device_name() if device == "cuda" else "one core of this machine's CPU"
    return Ceilings(name, max(copy, addition), tflops, str(dtype).removeprefix("torch."))


def land(name: str, call: Callable[[], Any], *, bytes_moved: float, operations: float) -> Landed:
    """Time a call and combine the time with the bytes and operations that you counted.

    Args:
        name: its label in the picture.
        call: a function without arguments.
        bytes_moved: bytes that it reads from memory plus bytes that it writes.
        operations: arithmetic operations, such as additions and multiplications.

    Raises:
        ValueError: a count that is not positive.
    """
    if not (bytes_moved > 0 and operations > 0):
        raise ValueError(f"{name}: bytes and operations must be positive, since the axes are logarithmic.")
    return Landed(name, float(bytes_moved), float(operations), time_ms(call))


_SIDE = {"cuda": 8192, "cpu": 4096}
_PRODUCT = {"cuda": 6144, "cpu": 1024}
_NOT_WRITTEN = "Nothing to try yet: write predict_ms first, then run this cell again."


@dataclass(frozen=True, repr=False)
class Trials(Table):
    """Predicted and measured milliseconds per operation, or a note that says why there are none."""

    rows: tuple[tuple[str, float, float], ...]
    note: str = ""

    _left = 1

    def _table(self) -> list[tuple[str, ...]]:
        rows = [
            (name, f"{figures(p)} ms", f"{figures(m)} ms", f"{m / p:.2f}" if p > 0 else "–") for name, p, m in self.rows
        ]
        return [("operation", "predicted", "measured", "measured / predicted"), *rows]

    def _note(self) -> str:
        return self.note


def try_predictions(
    predict_ms: Callable[[Mapping[str, Any], Mapping[str, float]], float], ceilings: Ceilings
) -> Trials:
    """Time torch operations of each kind on this machine and compare with the times that `predict_ms` predicts."""
    import torch

    from grader.worker.harnesses.timed_work import call_of

    device = "cuda" if torch.cuda.is_available() else "cpu"
    rows = []
    for operation in _operations(device, ceilings.dtype):
        try:
            predicted = float(predict_ms(dict(operation), ceilings.as_dict()))
        except NotImplementedError:
            return Trials((), _NOT_WRITTEN)
        except Exception as error:
            return Trials((), f"predict_ms fails for {dict(operation)}: {type(error).__name__}: {error}")
        rows.append((_name(operation), predicted, time_ms(call_of(operation, device))))
    return Trials(tuple(rows), f"Measured now on {ceilings.machine}.")


def _operations(device: str, product: str) -> list[dict[str, Any]]:
    side, n = _SIDE[device], _PRODUCT[device]
    shape = [side, side]
    half = "float16" if device == "cuda" else "float64"
    return [
        {"kind": "copy", "shape": shape, "dtype": "float32"},
        {"kind": "add", "shape": shape, "dtype": "float32"},
        {"kind": "sum", "shape": shape, "dtype": "float32"},
        {"kind": "convert", "shape": shape, "dtype": "float32", "to": half},
        {"kind": "add_row", "shape": shape, "dtype": "float32"},
        {"kind": "matmul", "batch": 1, "m": n, "n": n, "k": n, "dtype": product},
        {"kind": "matmul", "batch": 64, "m": n // 2, "n": n // 2, "k": 16, "dtype": product},
    ]


def _name(operation: Mapping[str, Any]) -> str:
    kind = str(operation["kind"])
    if kind == "convert":
        return f"convert to {operation['to']}"
    return "matmul, k = 16, batch" if kind == "matmul" and operation["batch"] > 1 else kind
