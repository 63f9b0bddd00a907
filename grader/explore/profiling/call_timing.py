"""The GPU of a notebook or its replacement, the times of a call on it, and the kernels that a call launches."""

from __future__ import annotations

import os
import random
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from importlib import import_module
from importlib.util import find_spec
from statistics import mean, median
from types import ModuleType
from typing import TYPE_CHECKING, Any

from grader.explore.drawing.displays import (
    BLUE,
    DARK,
    GREY,
    ORANGE,
    PALE,
    Picture,
    canvas,
    chart,
    finish,
    rectangle,
    write,
)
from grader.words import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_PRETEND = """\
A pretend GPU, since torch finds no real one here. It follows the rules of a real one, at a
snail's pace: a launch returns at once, kernels wait in a queue, torch.cuda.synchronize() and
torch.cuda.Event work. It computes nothing, and its kernel times are made up."""
_BUSY = r"""
extern "C" __global__ void busy(float* x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = x[i];
    for (int round = 0; round < ROUNDS; round++) value = value * 0.999f + 0.001f;
    x[i] = value;
}
"""
_BUSY_THREADS = 1 << 22


@dataclass(frozen=True)
class BusyGpu:
    """A GPU to time: its name, and whether it is the pretend one."""

    name: str
    pretend: bool

    def __repr__(self) -> str:
        return self.name

    def call(self) -> Callable[[], None]:
        """Return a new function that keeps the GPU busy for a few ms. Its first call is slow: it compiles the kernel.

        On the pretend GPU the first call only waits.
        """
        return _pretend_call() if self.pretend else _real_call()


def busy_gpu() -> BusyGpu:
    """Return this machine's GPU. If there is none, a pretend GPU replaces it in this process's `torch.cuda`."""
    import torch

    if torch.cuda.is_available():
        return BusyGpu(torch.cuda.get_device_name(), False)
    from grader.worker.simulator import virtual_gpu

    virtual_gpu.install()
    return BusyGpu(_PRETEND, True)


def _pretend_call() -> Callable[[], None]:
    from grader.worker.harnesses.timed_work import callable_of

    return callable_of({"first_ms": random.uniform(150, 250), "virtual": [[random.uniform(400, 600), 50]]})


def _real_call() -> Callable[[], None]:
    import torch

    made: list[Any] = []
    rounds = random.randrange(30_000, 50_000)

    def function() -> None:
        if not made:
            source = _BUSY.strip().replace("ROUNDS", str(rounds))  # unique, so that no cached kernel is used
            made.extend((torch.cuda._compile_kernel(source, "busy"), torch.zeros(_BUSY_THREADS, device="cuda")))
        kernel, x = made
        kernel((_BUSY_THREADS // 256, 1, 1), (256, 1, 1), (x,))

    return function


def load_cupy() -> ModuleType:
    """Return `cupy`, so that a later `import cupy` gives the same module, and put `nvcc` on the path.

    Raises:
        RuntimeError: there is a GPU but CuPy is not installed.
    """
    import torch

    from grader.worker.simulator import cupy_module
    from grader.worker.toolchain import nvcc

    on_gpu = torch.cuda.is_available()
    if not on_gpu:
        cupy_module.offer()
    nvcc.offer(simulated=not on_gpu)
    try:
        return import_module("cupy")
    except ImportError as error:
        raise RuntimeError(
            "This machine has a GPU but CuPy is not installed. Run: rm -f .venv/.lab && make lab EXTRA=gpu"
        ) from error


def load_numba_cuda() -> ModuleType:
    """Return `numba.cuda`, using the simulator if the GPU or the package `numba-cuda` is missing.

    Numba reads this setting when it is imported, so call this before importing `numba`.
    """
    if "numba" not in sys.modules:
        import torch

        on_gpu = torch.cuda.is_available() and find_spec("numba_cuda") is not None
        os.environ.setdefault("NUMBA_ENABLE_CUDASIM", "0" if on_gpu else "1")
        # The course launches kernels with ten threads on purpose; the warning would only distract.
        os.environ.setdefault("NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS", "0")
    from grader.worker.gpu_start import give_numba_its_names

    give_numba_its_names()
    return import_module("numba.cuda")


def time_after(before: Callable[[], Any], function: Callable[[], Any], repeats: int = 30) -> list[float]:
    """Return the milliseconds of `function()` alone, each time right after `before()`; on the CPU if there is no GPU.

    The GPU first gets other work, so that both calls are queued when it ends and launch overhead is not timed. A CPU
    uses a single thread, since torch's other threads are slow to wake up.
    """
    import torch

    if not torch.cuda.is_available():
        return _on_cpu(before, function, repeats)
    other, times = BusyGpu("", pretend=False).call(), []
    other()
    for _ in range(repeats):
        other()  # first, since its own memory would evict what `before` left in the cache
        before()
        times.append(event_ms(function))
    return times


def _event() -> Any:
    import torch

    make: Any = torch.cuda.Event
    return make(enable_timing=True)


def event_ms(call: Callable[[], Any]) -> float:
    """Return the milliseconds of one call on the GPU's current stream, by CUDA events."""
    start, end = _event(), _event()
    start.record()
    call()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end))


def _on_cpu(before: Callable[[], Any], function: Callable[[], Any], repeats: int) -> list[float]:
    import torch

    threads, times = torch.get_num_threads(), []
    torch.set_num_threads(1)
    try:
        for _ in range(repeats):
            before()
            start = time.perf_counter()
            function()
            times.append(1e3 * (time.perf_counter() - start))
    finally:
        torch.set_num_threads(threads)
    return times


@dataclass(frozen=True)
class Timeline:
    """Start and end of launches and kernels, in ms after the first launch."""

    launches: tuple[tuple[float, float], ...]  # on the host
    kernels: tuple[tuple[float, float], ...]  # on the GPU
    waited_until: float  # the end of the host's `torch.cuda.synchronize()`
    pretend: bool

    @classmethod
    def of(cls, call: Callable[[], Any], times: int = 1) -> Timeline:
        """Call the function `times` times, synchronise, and record when host and GPU were busy."""
        import torch

        marks, zero = [(_event(), _event()) for _ in range(times)], _event()
        call()
        torch.cuda.synchronize()
        zero.record()
        begun, launches = time.perf_counter(), []
        for start, end in marks:
            left = time.perf_counter()
            start.record()
            call()
            end.record()
            launches.append((1e3 * (left - begun), 1e3 * (time.perf_counter() - begun)))
        torch.cuda.synchronize()
        until = 1e3 * (time.perf_counter() - begun)
        kernels = tuple((zero.elapsed_time(start), zero.elapsed_time(end)) for start, end in marks)
        return cls(tuple(launches), kernels, until, not torch.cuda.is_available())

    def draw(self) -> Picture:
        """Draw two rows over time: host and GPU."""
        figure, axes = canvas(7.6, 2.5)
        extent = max(self.waited_until, self.kernels[-1][1])
        axes.set_xlim(-0.13 * extent, 1.04 * extent)
        axes.set_ylim(3.75, -0.75)
        returned = self.launches[-1][1]
        for left, right in self.launches:
            _block(axes, left, max(right, left + 0.004 * extent), 0, ORANGE)
        _block(axes, returned, self.waited_until, 0, "white", "waits in synchronize()", hatch="///")
        for number, (left, right) in enumerate(self.kernels, start=1):
            name = f"kernel {number}" if len(self.kernels) > 1 else "kernel"
            _block(axes, left, right, 1.5, PALE if number % 2 else "white", name, edge=BLUE)
        for text, y in (("host", 0.5), ("GPU", 2)):
            write(axes, -0.015 * extent, y, text, 12, "right")
        launches = "launches" if len(self.launches) > 1 else "launch"
        _mark(axes, returned, f"{returned:.2f} ms: {launches} returned", extent)
        _mark(axes, self.waited_until, f"{self.waited_until:.2f} ms: synchronize() returned", extent)
        alt = (
            f"Host and GPU over time{', on a pretend GPU' if self.pretend else ''}. The host has returned from "
            f"{len(self.launches)} {launches} after {returned:.2f} ms and then waits in synchronize() until "
            f"{self.waited_until:.2f} ms. Meanwhile the GPU runs one kernel after the other, the last one until "
            f"{self.kernels[-1][1]:.2f} ms."
        )
        return finish(figure, alt)


def draw_timeline(call: Callable[[], Any], times: int = 1) -> Picture:
    """Call the function `times` times, synchronise, and draw host and GPU over time.

    This is done three times; the fastest run is drawn.
    """
    return min((Timeline.of(call, times) for _ in range(3)), key=lambda one: one.waited_until).draw()


def _block(
    axes: Axes, left: float, right: float, top: float, fill: str, text: str = "", *, hatch: str = "", edge: str = DARK
) -> None:
    rectangle(axes, (left, top), right - left, 1, facecolor=fill, edgecolor=edge, linewidth=1, hatch=hatch)
    behind = {"facecolor": "white", "edgecolor": "none", "pad": 2} if hatch else None
    write(axes, (left + right) / 2, top + 0.5, text, 11, bbox=behind)


def _mark(axes: Axes, at: float, text: str, extent: float) -> None:
    """Draw a dashed line with its time: above in the first half, below in the second, so that labels never overlap."""
    early = at < extent / 2
    axes.plot([at, at], [-0.3, 2.8], color=DARK, linewidth=1.2, linestyle="--")
    side = "left" if early else "right"
    write(axes, at, -0.5 if early else 3.2, text, 11, side)


def draw_times(times_ms: Sequence[float]) -> Picture:
    """Draw each time as a point, in call order, with the median and the mean as lines.

    Raises:
        ValueError: `times_ms` is empty.
    """
    if not times_ms:
        raise ValueError("There are no times to draw.")
    middle, average = median(times_ms), mean(times_ms)
    figure, axes = chart(7.6, 2.8)
    axes.plot(range(1, len(times_ms) + 1), times_ms, "o", color=BLUE, markersize=5, label="one call")
    axes.axhline(middle, color=DARK, linewidth=1.6, label=f"median {middle:.3g} ms")
    axes.axhline(average, color=ORANGE, linewidth=1.6, linestyle="--", label=f"mean {average:.3g} ms")
    axes.set_xlabel("call")
    axes.set_ylabel("ms")
    axes.grid(axis="y", color=GREY, alpha=0.25)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5))
    alt = (
        f"The times of {plural(len(times_ms), 'call')} in order: from {min(times_ms):.3g} to {max(times_ms):.3g} ms, "
        f"median {middle:.3g} ms, mean {average:.3g} ms."
    )
    return finish(figure, alt)


@dataclass(frozen=True)
class KernelRun:
    """One kernel of one call."""

    name: str
    time_us: float

    @property
    def short_name(self) -> str:
        """The function's name, without its namespaces, template arguments and parameters."""
        name = self.name.removeprefix("void ").replace("(anonymous namespace)::", "")
        return re.split(r"[<(]", name, maxsplit=1)[0].rpartition("::")[2].strip() or self.name


@dataclass(frozen=True)
class Kernels:
    """The kernels of a call, in launch order; `note` says so if they did not run on this machine."""

    runs: tuple[KernelRun, ...]
    note: str = ""

    def records(self, title: str) -> list[dict[str, Any]]:
        """Return rows for a benchmark to record; `list_kernels(…, title=title)` shows them if there is no GPU."""
        return [
            {"bench": "kernels", "case": f"{title}, {number}: {run.name}", "metric": "time_us", "unit": "µs"}
            | {"value": run.time_us, "low": None, "high": None}
            for number, run in enumerate(self.runs, start=1)
        ]

    @property
    def total_us(self) -> float:
        return sum(run.time_us for run in self.runs)

    def __len__(self) -> int:
        return len(self.runs)

    def __repr__(self) -> str:
        lines = [f"{run.time_us:9.1f} µs  {run.short_name}" for run in self.runs]
        total = [f"{self.total_us:9.1f} µs  total"] if self.runs else []
        return "\n".join([*lines, *total, *([self.note] if self.note else [])])

    def _repr_html_(self) -> str:
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        if not self.runs:
            return note
        rows = [*((run.short_name, run.name, run.time_us) for run in self.runs), ("total", "", self.total_us)]
        left, right = "text-align:left; overflow-wrap:anywhere", "text-align:right; white-space:nowrap"
        body = "".join(
            f"<tr><td style='{left}' title='{escape(full)}'>{escape(name)}</td>"
            f"<td style='{right}'>{time_us:.1f} µs</td></tr>"
            for name, full, time_us in rows
        )
        return f"<table><tr><th style='{left}'>kernel</th><th>time</th></tr>{body}</table>{note}"


def list_kernels(function: Callable[..., Any], *arguments: Any, title: str = "") -> Kernels:
    """Call `function(*arguments)` twice and list the kernels of the second call; the first one warms up.

    Without a GPU nothing runs: the kernels recorded under `title` are listed instead, if there are any.
    """
    import torch

    if not torch.cuda.is_available():
        return _recorded_kernels(title)
    from torch.profiler import ProfilerActivity, profile

    function(*arguments)
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as session:
        function(*arguments)
        torch.cuda.synchronize()
    found = [event for event in session.events() or [] if event.device_type.name == "CUDA"]
    found.sort(key=lambda event: event.time_range.start)
    return Kernels(tuple(KernelRun(event.name, float(event.device_time)) for event in found))


def _recorded_kernels(title: str) -> Kernels:
    from grader.explore.drawing.recorded_results import recorded

    found = recorded("kernels", "time_us")
    rows = [row for row in found.rows if str(row["case"]).startswith(f"{title}, ")]
    if not title:
        return Kernels((), "Listing kernels needs a GPU.")
    if not rows:
        return Kernels((), "Kernels can be listed only on a machine with a GPU, and none are recorded yet.")
    runs = (KernelRun(str(row["case"]).partition(": ")[2], float(row["value"])) for row in rows)
    return Kernels(tuple(runs), found.origin)
