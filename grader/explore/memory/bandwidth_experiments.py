"""CUDA kernels that move bytes or branch in different ways, timed on a GPU or shown as recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from statistics import median
from typing import Any

from grader.explore.drawing.displays import BLUE, DARK, PALE, Picture, canvas, code_html, finish, rectangle, write
from grader.explore.drawing.recorded_results import recorded

_REPEATS = 25
_WARM_UP = 3
HEAD_START_CYCLES = 400_000  # about 0.2 ms: time for the host to queue the timed launches
_THREADS = 256  # per block, unless the experiment sets another number


@dataclass(frozen=True)
class Run:
    """One launch: the kernel's name, its grid and block, its arguments, and the useful bytes it moves."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple[Any, ...]
    moved: int


@dataclass(frozen=True)
class Measured:
    """One number per case of an experiment: a chart in a notebook, lines in a terminal."""

    title: str
    unit: str
    values: Mapping[str, float]
    origin: str
    how: str

    def value(self, case: str) -> float | None:
        """The case's number, or None."""
        return self.values.get(case)

    def ratio(self, case: str, to: str) -> float | None:
        """The number of `case` divided by that of `to`, or None if one is missing."""
        return self.values[case] / self.values[to] if {case, to} <= self.values.keys() else None

    def picture(self) -> Picture:
        """One bar per case."""
        top = max(self.values.values())
        figure, axes = canvas(8.6, 0.38 * len(self.values) + 0.55, (-0.52, 1.24), (len(self.values) + 0.1, -1.1))
        write(axes, 0, -0.55, f"{self.title}, {self.unit}", 11.5, "left", weight="bold")
        for row, (case, value) in enumerate(self.values.items()):
            rectangle(axes, (0, row + 0.12), value / top, 0.72, facecolor=BLUE, edgecolor=DARK, linewidth=0.6)
            write(axes, -0.02, row + 0.48, case, 10.5, "right")
            write(
                axes, value / top + 0.015, row + 0.48, f"{value:,.3g}" if value < 100 else f"{value:,.0f}", 10.5, "left"
            )
        said = "; ".join(f"{case}: {value:,.4g}" for case, value in self.values.items())
        return finish(figure, f"A bar chart of {self.title}, in {self.unit}. {said}.", width=760)

    def __repr__(self) -> str:
        width = max(map(len, self.values), default=0)
        lines = [f"{case:>{width}}  {value:,.4g} {self.unit}" for case, value in self.values.items()]
        return "\n".join([*lines, self.origin])

    def _repr_html_(self) -> str:
        return (self.picture()._repr_html_() if self.values else "") + f"<p>{escape(self.origin)}</p>"


@dataclass(frozen=True)
class Experiment:
    """CUDA C++ source with one or more kernels, and the launches to time. A notebook displays the source."""

    name: str
    title: str
    source: str
    runs: Callable[[int], dict[str, Run]]  # takes the number of SMs
    metric: str = "bandwidth_gbps"
    unit: str = "GB/s"
    against: str = ""  # the case to divide times by, if the metric is a ratio of times

    def __repr__(self) -> str:
        return self.source

    def _repr_html_(self) -> str:
        return code_html(self.source, f"font-size:13px; border-left:4px solid {PALE}; padding:6px 12px; margin:4px 0")

    def values(self, times_us: Mapping[str, float], runs: Mapping[str, Run]) -> dict[str, float]:
        """The metric of each case, from its microseconds."""
        if self.against:
            return {case: time / times_us[self.against] for case, time in times_us.items()}
        return {case: runs[case].moved / time / 1e3 for case, time in times_us.items()}

    def run(self) -> Measured:
        """Measure on this machine's GPU; without one, return the values recorded on another."""
        import torch

        if not torch.cuda.is_available():
            past = recorded(f"bytes/{self.name}", self.metric)
            values = {row["case"]: float(row["value"]) for row in past.rows}
            return Measured(self.title, self.unit, values, past.origin, "recorded")
        times, runs = samples_us(self)
        values = self.values({case: median(each) for case, each in times.items()}, runs)
        origin = f"Measured now on {torch.cuda.get_device_name()}: medians of {_REPEATS} launches with a cold L2 cache."
        return Measured(self.title, self.unit, values, origin, "measured")


def samples_us(of: Experiment, repeats: int = _REPEATS) -> tuple[dict[str, list[float]], dict[str, Run]]:
    """Return the times of each launch, in µs by CUDA events, and the runs. Cases alternate, each with a flushed L2."""
    import torch

    cuda: Any = torch.cuda
    properties = cuda.get_device_properties(0)
    runs = of.runs(properties.multi_processor_count)
    built = {name: cuda._compile_kernel(of.source, name) for name in {run.kernel for run in runs.values()}}
    flush = torch.empty(4 * properties.L2_cache_size, dtype=torch.uint8, device="cuda")
    times: dict[str, list[float]] = {case: [] for case in runs}
    for repeat in range(_WARM_UP + repeats):
        marks = {}
        cuda._sleep(HEAD_START_CYCLES)
        for case, run in runs.items():
            start, end = (cuda.Event(enable_timing=True) for _ in range(2))
            flush.zero_()
            start.record()
            built[run.kernel](run.grid, run.block, run.arguments)
            end.record()
            marks[case] = start, end
        cuda.synchronize()
        if repeat >= _WARM_UP:
            for case, (start, end) in marks.items():
                times[case].append(1e3 * start.elapsed_time(end))
    return times, runs


def _floats(n: int) -> Any:
    import torch

    return torch.ones(n, device="cuda")


def _flat(n: int) -> dict[str, tuple[int, int, int]]:
    return {"grid": (-(-n // _THREADS), 1, 1), "block": (_THREADS, 1, 1)}


_STRIDE = """\
extern "C" __global__ void stride(const float* x, float* out, int n, int step) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i * step];
}
"""


def _stride_runs(sms: int) -> dict[str, Run]:
    n, steps = 1 << 24, (1, 2, 4, 8, 16, 32)
    x, out = _floats(n * steps[-1]), _floats(n)
    return {f"stride {step}": Run("stride", **_flat(n), arguments=(x, out, n, step), moved=8 * n) for step in steps}


_OFFSET = """\
extern "C" __global__ void offset(const float* x, float* out, int n, int first) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i + first];
}
"""


def _offset_runs(sms: int) -> dict[str, Run]:
    n, offsets = 1 << 26, (0, 1, 2, 4, 8, 16)
    x, out = _floats(n + offsets[-1]), _floats(n)
    return {f"offset {each}": Run("offset", **_flat(n), arguments=(x, out, n, each), moved=8 * n) for each in offsets}


_WIDTH = """\
extern "C" __global__ void copy1(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i];
}
extern "C" __global__ void copy2(const float2* x, float2* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i];
}
extern "C" __global__ void copy4(const float4* x, float4* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i];
}
"""


def _width_runs(sms: int) -> dict[str, Run]:
    n = 1 << 26
    x, out = _floats(n), _floats(n)
    names = {1: "float", 2: "float2", 4: "float4"}
    return {
        name: Run(f"copy{wide}", **_flat(n // wide), arguments=(x, out, n // wide), moved=8 * n)
        for wide, name in names.items()
    }


_IN_FLIGHT = """\
extern "C" __global__ void few(const float4* x, float4* out, int n) {
    int threads = gridDim.x * blockDim.x;
    #pragma unroll 1  // a thread asks for 16 bytes, waits for them, stores them, and asks for the next
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += threads) out[i] = x[i];
}
"""


def _in_flight_runs(sms: int) -> dict[str, Run]:
    n = 1 << 24  # of float4
    x, out = _floats(4 * n), _floats(4 * n)
    runs = {}
    for threads in (32, 64, 128, 256, 512, 1024, 2048):
        blocks, block = (2, 1024) if threads == 2048 else (1, threads)
        sizes = {"grid": (sms * blocks, 1, 1), "block": (block, 1, 1)}
        runs[f"{threads * 16 / 1024:g} KiB"] = Run("few", **sizes, arguments=(x, out, n), moved=32 * n)
    return runs


_NAIVE = """\
extern "C" __global__ void reads_rows(const float* x, float* out, int height, int width) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < height && column < width) out[column * height + row] = x[row * width + column];
}
extern "C" __global__ void writes_rows(const float* x, float* out, int height, int width) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int column = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < height && column < width) out[column * height + row] = x[row * width + column];
}
extern "C" __global__ void copy(const float* x, float* out, int height, int width) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < height && column < width) out[row * width + column] = x[row * width + column];
}
"""


def _naive_runs(sms: int) -> dict[str, Run]:
    n = 8192
    x, out = _floats(n * n), _floats(n * n)
    names = {"copy": "copy", "reads along rows": "reads_rows", "writes along rows": "writes_rows"}
    return {
        case: Run(name, (n // 32, n // 8, 1), (32, 8, 1), (x, out, n, n), 8 * n * n) for case, name in names.items()
    }


_BANKS = """\
extern "C" __global__ void banks(float* out, int step, int rounds) {
    __shared__ volatile float words[33 * 32];
    for (int i = threadIdx.x; i < 33 * 32; i += blockDim.x) words[i] = i;
    __syncthreads();
    int at = (threadIdx.x % 32) * step;
    float sum = 0;
    #pragma unroll 16
    for (int round = 0; round < rounds; round++) sum += words[at];  // volatile: it is loaded each time
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
"""


def _banks_runs(sms: int) -> dict[str, Run]:
    rounds, blocks = 4096, 4 * sms
    out = _floats(blocks * _THREADS)
    sizes = _flat(blocks * _THREADS)
    return {
        f"step {step}": Run("banks", **sizes, arguments=(out, step, rounds), moved=4 * rounds * blocks * _THREADS)
        for step in (1, 2, 4, 8, 16, 32, 33)
    }


_DIVERGENCE = """\
extern "C" __global__ void branches(float* out, int period, int part, int rounds) {
    float value = 0.001f * threadIdx.x;
    if (threadIdx.x % period < part)
        for (int round = 0; round < rounds; round++) value = value * value + 0.1f;
    else
        for (int round = 0; round < rounds; round++) value = 0.5f - value * value;
    out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}
"""


def _divergence_runs(sms: int) -> dict[str, Run]:
    rounds, threads = 1 << 14, 2048 * sms  # as many threads as fit: the arithmetic is the limit, not its latency
    out = _floats(threads)
    parts = {"all alike": (32, 32), "by warp": (64, 32), "by lane": (2, 1), "one lane": (32, 1)}
    return {
        case: Run("branches", **_flat(threads), arguments=(out, period, part, rounds), moved=4 * threads)
        for case, (period, part) in parts.items()
    }


EXPERIMENTS: dict[str, Experiment] = {
    each.name: each
    for each in (
        Experiment("stride", "useful bandwidth by stride", _STRIDE, _stride_runs),
        Experiment("offset", "bandwidth by offset", _OFFSET, _offset_runs),
        Experiment("width", "bandwidth of a copy by element type", _WIDTH, _width_runs),
        Experiment("in_flight", "bandwidth by bytes in flight per SM", _IN_FLIGHT, _in_flight_runs),
        Experiment("naive", "bandwidth at 8192 × 8192", _NAIVE, _naive_runs),
        Experiment("banks", "time by step", _BANKS, _banks_runs, "time_ratio", "times step 1", against="step 1"),
        Experiment(
            "divergence", "time by branch", _DIVERGENCE, _divergence_runs, "time_ratio", "times all alike", "all alike"
        ),
    )
}


def experiment(name: str) -> Experiment:
    """Return the experiment with this name: `stride`, `offset`, `width`, `in_flight`, `naive`, `banks` or
    `divergence`.

    Raises:
        ValueError: there is no experiment of this name.
    """
    if name not in EXPERIMENTS:
        raise ValueError(f"There is no experiment {name!r}; choose from {', '.join(EXPERIMENTS)}.")
    return EXPERIMENTS[name]
