"""The roofline: the ceilings of a machine, kernels below them, and controls to try operations."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.explore.drawing.displays import BLUE, DARK, GREY, ORANGE, Interactive, Picture, Table, chart, finish
from grader.explore.drawing.recorded_results import Recorded, recorded

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEAST_RIDGE = 4.0
_SHORT = 54  # characters: lines up to this length go in two columns
_KERNELS_SHOWN = ("vector_add", "softmax", "fuse", "matmul")  # each at its largest size
_OTHERS_SHOWN = ("torch mean", "torch softmax", "matmul, 256 ", "matmul, 1024 ")
_ABOVE = 1.25  # times the roof: a point below this may be noise


def draw_roofline(ceilings: Ceilings, *landed: Landed, predicted: bool = False) -> Picture:
    """Draw the two ceilings on logarithmic axes, and one numbered, named point per call.

    Args:
        ceilings: from `measure_ceilings`.
        landed: from `land`.
        predicted: the points are predictions, which lie on the roof by definition.
    """
    unit, prefix = (1e3, "GFLOPS") if 0 < ceilings.tflops < 2 else (1.0, "TFLOPS")
    low, high = _x_range(ceilings, landed)
    figure, axes = chart(9.6, 4.6)
    axes.set(xscale="log", yscale="log", xlim=(low, high))
    top = unit * 4 * max([ceilings.roof(high), *(one.tflops for one in landed)])
    bottom = unit * 0.4 * min([ceilings.roof(low), *(one.tflops for one in landed)])
    axes.set_ylim(bottom, top)
    _roof(axes, ceilings, low, high, unit)
    for number, one in enumerate(landed, start=1):
        above = one.tflops > _ABOVE * ceilings.roof(one.intensity) and not predicted
        axes.plot([one.intensity] * 2, [bottom, unit * one.tflops], color=GREY, linewidth=0.8, linestyle=":", zorder=1)
        axes.plot(
            one.intensity, unit * one.tflops, marker="s" if above else "o", markersize=17, color="white",
            markeredgecolor=DARK, markeredgewidth=2.4 if above else 1.3, zorder=4,
        )  # fmt: skip
        axes.text(
            one.intensity, unit * one.tflops, str(number), ha="center", va="center_baseline", fontsize=10, color=DARK,
            zorder=5,
        )  # fmt: skip
        far_right = one.intensity > high / 6
        axes.annotate(
            _label(one, landed), (one.intensity, unit * one.tflops), xytext=(-10 if far_right else 10, -13),
            textcoords="offset points", ha="right" if far_right else "left", va="center", fontsize=9, color=DARK,
        )  # fmt: skip
    axes.set_title(ceilings.machine if ceilings.measured_here else ceilings.origin, loc="left", fontsize=12, color=DARK)
    axes.set_xlabel("arithmetic intensity: operations per byte", fontsize=11)
    axes.set_ylabel(f"operations per second: {prefix}", fontsize=11)
    axes.grid(which="major", color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.xaxis.set_major_formatter(_plain)
    axes.yaxis.set_major_formatter(_plain)
    if landed:
        lines = [f"{number}  {_words(one, ceilings, predicted)}" for number, one in enumerate(landed, start=1)]
        half = -(-len(lines) // (2 if max(map(len, lines)) <= _SHORT else 1))
        for left, column in ((0.06, lines[:half]), (0.54, lines[half:])):
            figure.text(left, -0.02, "\n".join(column), va="top", fontsize=10.5, color=DARK, linespacing=1.6)
    return _finished(figure, ceilings, landed, predicted)


def _label(one: Landed, landed: Sequence[Landed]) -> str:
    """The point's name up to the comma, with the first number after it if another point has the same name."""
    head, _, rest = one.name.partition(",")
    alone = sum(other.name.partition(",")[0] == head for other in landed) == 1
    return head if alone or not rest else f"{head} {rest.split()[0]}"


def _x_range(ceilings: Ceilings, landed: Sequence[Landed]) -> tuple[float, float]:
    found = [one.intensity for one in landed]
    right = 8 * max(ceilings.ridge, _LEAST_RIDGE) if ceilings.tflops else 2.0
    return min([1 / 16, *(one / 2 for one in found)]), max([right, *(2 * one for one in found)])


def _roof(axes: Axes, ceilings: Ceilings, low: float, high: float, unit: float) -> None:
    corner = min(max(ceilings.ridge, low), high) if ceilings.tflops else high
    slanted = [unit * x * ceilings.bandwidth_gbps / 1e3 for x in (low, corner)]
    axes.plot([low, corner], slanted, color=BLUE, linewidth=3.2, zorder=2, solid_capstyle="round")
    at = low * (corner / low) ** 0.72  # below the slanted roof, where there are few points
    axes.annotate(
        f"memory: {figures(ceilings.bandwidth_gbps)} GB/s", (at, unit * at * ceilings.bandwidth_gbps / 1e3),
        xytext=(14, -14), textcoords="offset points", va="center", fontsize=11, color=BLUE, weight="bold",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
    )  # fmt: skip
    if not ceilings.tflops:
        return
    flat = unit * ceilings.tflops
    axes.plot([corner, high], [flat, flat], color=ORANGE, linewidth=3.2, linestyle=(0, (5, 1.2)), zorder=2)
    axes.annotate(
        f"arithmetic: {rate(ceilings.tflops)}", (high, flat), xytext=(0, 13), textcoords="offset points", ha="right",
        fontsize=11, color=DARK, weight="bold",
    )  # fmt: skip
    axes.plot(corner, flat, marker="D", color=DARK, markersize=6, zorder=3)
    axes.annotate(
        f"ridge: {figures(ceilings.ridge)}", (corner, flat), xytext=(8, -8), textcoords="offset points", fontsize=10.5,
        va="top", color=DARK,
    )  # fmt: skip


def _plain(value: float, _: Any) -> str:
    return f"{value:,.4g}" if value >= 1e-3 else f"{value:.0e}"


def _words(one: Landed, ceilings: Ceilings, predicted: bool) -> str:
    percent = 100 * one.tflops / ceilings.roof(one.intensity)
    shown = f"{percent:,.0f}" if percent >= 1 else f"{percent:.2g}"
    share = "" if predicted else f", {shown} % of the roof"
    return f"{one.name}: {figures(one.intensity)} op/B, {rate(one.tflops)}{share}"


def _finished(figure: Any, ceilings: Ceilings, landed: Sequence[Landed], predicted: bool) -> Picture:
    import matplotlib

    origin = "" if ceilings.measured_here else f"{ceilings.origin} "
    alt = f"Roofline of {ceilings.machine}. {origin}The slanted roof is memory, {figures(ceilings.bandwidth_gbps)} GB/s"
    if ceilings.tflops:
        alt += f"; the flat one is arithmetic, {rate(ceilings.tflops)}; they meet at {figures(ceilings.ridge)} "
        alt += "operations per byte"
    points = "; ".join(_words(one, ceilings, predicted) for one in landed)
    alt += f". {'Predicted' if predicted else 'Points'}: {points}." if points else "."
    with matplotlib.rc_context({"savefig.bbox": "tight"}):
        return finish(figure, alt, width=820)


def recorded_ceilings(folder: Path | None = None) -> Ceilings | None:
    """Return the most recently recorded GPU's float16 ceilings, or its bandwidth alone; None without a record."""
    found = recorded("ceilings", "bandwidth_gbps", "tflops", folder=folder)
    gbps, tflops = found.value("bandwidth_gbps", "large copy"), found.value("tflops", "float16 matrix product")
    if gbps is None:
        found, tflops = recorded("copy", "bandwidth_gbps", folder=folder), None
        gbps = next((float(row["value"]) for row in found.rows), None)
    if gbps is None:
        return None
    return Ceilings(str(found.rows[0]["gpu"]), gbps, tflops or 0.0, "float16", found.origin)


def recorded_kernels(folder: Path | None = None) -> list[Landed]:
    """Return eight recorded points, so that each can be read: four of the course's kernels and four of PyTorch.

    `make bench ARGS=kernels` records the kernels' times; the others come from `ARGS=ceilings`.
    """
    from grader.exercises import find

    found: list[Landed] = []
    for exercise in map(find, _KERNELS_SHOWN):
        times = recorded(exercise.id, "median_us", folder=folder)
        for case in [case for case in exercise.plot_cases if times.value("median_us", case.name)][-1:]:
            us = times.value("median_us", case.name) or math.nan
            name = f"{exercise.id}, {case.name}"
            found.append(Landed(name, exercise.bytes_moved(case), exercise.operations(case), us / 1e3))
    extra = recorded("roofline", "bytes", "operations", "median_us", folder=folder)
    cases = [case for case in dict.fromkeys(str(row["case"]) for row in extra.rows) if case.startswith(_OTHERS_SHOWN)]
    return [*found, *(one for case in cases if (one := _of(extra, case)))]


def _of(found: Recorded, case: str) -> Landed | None:
    bytes_moved, operations, us = (found.value(metric, case) for metric in ("bytes", "operations", "median_us"))
    return Landed(case, bytes_moved, operations, us / 1e3) if bytes_moved and operations and us else None


def recorded_roofline(folder: Path | None = None) -> Picture | Recorded:
    """The recorded GPU's roofline with the course's kernels, or a sentence saying that nothing is recorded."""
    ceilings = recorded_ceilings(folder)
    if ceilings is None:
        return recorded("ceilings", "bandwidth_gbps", "tflops", folder=folder)
    benches = ("ceilings", "roofline", *_KERNELS_SHOWN)
    rows = [row for bench in benches for row in recorded(bench, "bandwidth_gbps", "median_us", folder=folder).rows]
    origin = Recorded("roofline", (), tuple(rows)).origin  # roof and points may be recorded on different days
    return draw_roofline(replace(ceilings, origin=origin), *recorded_kernels(folder))


_OPERATIONS = ("add", "square", "mean", "softmax", "matmul")
_ITEM_BYTES = {"float16": 2, "float32": 4, "float64": 8}
_SIZES = [2**power for power in range(5, 15)]
_START = ("matmul", 128, "float32")
_STILL = (
    *(("matmul", n, "float32") for n in (32, 128, 512, 2048)),
    ("add", 4096, "float32"),
    ("softmax", 4096, "float32"),
)


def count(operation: str, n: int, dtype: str = "float32") -> tuple[int, int]:
    """Return the bytes and operations for `n` × `n` matrices. Softmax is fused, matmul reads each input once."""
    size = _ITEM_BYTES[dtype]
    matrices = {"add": 3, "square": 2, "mean": 1, "softmax": 2, "matmul": 3}[operation]
    work = {"softmax": 5, "matmul": 2 * n}.get(operation, 1) * n * n
    return matrices * n * n * size + (size if operation == "mean" else 0), work


def predict(operation: str, n: int, dtype: str, ceilings: Ceilings) -> Landed:
    """Return the operation with the minimum time that the ceilings allow."""
    moved, work = count(operation, n, dtype)
    roof_ms = work / ceilings.roof(work / moved) / 1e9
    return Landed(f"{operation}, {n:,} × {n:,}, {dtype}", moved, work, roof_ms)


@dataclass(frozen=True)
class RooflineView(Interactive):
    """Controls above a roofline. Without widgets, one picture shows several choices at once."""

    machines: Mapping[str, Ceilings]

    @property
    def picture(self) -> Picture:
        """The picture without widgets: matmul at growing sizes, and two operations of constant intensity."""
        ceilings = next(iter(self.machines.values()))
        return draw_roofline(ceilings, *(predict(*one, ceilings) for one in _STILL), predicted=True)

    def shown(self, machine: str, operation: str, n: int, dtype: str) -> str:
        """The roofline for one choice and an explanation, as HTML."""
        ceilings = self.machines[machine]
        one = predict(operation, n, dtype, ceilings)
        memory_ms, compute_ms = one.bytes_moved / ceilings.bandwidth_gbps / 1e6, one.operations / ceilings.tflops / 1e9
        limit = "memory" if memory_ms >= compute_ms else "arithmetic"
        said = (
            f"Memory: {one.bytes_moved:,.0f} B in {_time(memory_ms)}. Arithmetic: {one.operations:,.0f} operations in "
            f"{_time(compute_ms)}. The longer of the two counts: limited by {limit}, at {rate(one.tflops)}."
        )
        picture = draw_roofline(ceilings, one, predicted=True)
        return f"{picture._repr_html_()}<p>{escape(said)}</p>"

    def widget(self) -> Any:
        """The controls and the picture, as an ipywidget."""
        import ipywidgets

        operation, n, dtype = _START
        choices = {
            "machine": ipywidgets.Dropdown(options=list(self.machines), description="machine"),
            "operation": ipywidgets.Dropdown(options=_OPERATIONS, value=operation, description="operation"),
            "n": ipywidgets.SelectionSlider(options=_SIZES, value=n, description="n", continuous_update=False),
            "dtype": ipywidgets.Dropdown(options=list(_ITEM_BYTES), value=dtype, description="dtype"),
        }
        picture = ipywidgets.HTML()

        def draw(_: Any = None) -> None:
            picture.value = self.shown(**{name: choice.value for name, choice in choices.items()})

        for choice in choices.values():
            choice.observe(draw, names="value")
        draw()
        return ipywidgets.VBox([ipywidgets.HBox([*choices.values()], layout={"flex_flow": "row wrap"}), picture])

    def __repr__(self) -> str:
        return repr(self.picture)

    def _still_html(self) -> str:
        return self.picture._repr_html_()


def explore_roofline(*machines: Ceilings) -> RooflineView:
    """Choose an operation, a size and a data type, and see its point on your roofline or a recorded GPU's.

    Raises:
        ValueError: no machine, or one without measured arithmetic throughput.
    """
    if not machines or not all(one.tflops for one in machines):
        raise ValueError("explore_roofline needs the ceilings of a machine, as measure_ceilings() returns them.")
    recorded = recorded_ceilings()
    with_gpu = [*machines, recorded] if recorded is not None and recorded.tflops else machines
    return RooflineView({one.machine: one for one in with_gpu})


def _time(ms: float) -> str:
    for size, unit in ((1e3, "s"), (1.0, "ms"), (1e-3, "µs")):
        if ms >= size:
            return f"{figures(ms / size)} {unit}"
    return f"{figures(ms * 1e6)} ns"


_COPY_BYTES = {"cuda": 1 << 29, "cpu": 1 << 26}
_PRODUCT_SIZE = {"cuda": 4096, "cpu": 1024}
_BATCH_MS = 2.0  # at least; shorter batches are too short for the clock
_THOROUGH = 21  # batches, for the values that everything else is compared with
_SLEEP_CYCLES = 2_000_000  # about 1 ms, so that the host queues the launches before the GPU starts them


@dataclass(frozen=True)
class Ceilings:
    """The two ceilings of a machine. `tflops` is for a matrix product in `dtype`, or 0 if not measured."""

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
        slanted = intensity * self.bandwidth_gbps / 1e3
        return min(slanted, self.tflops) if self.tflops else slanted

    def as_dict(self) -> dict[str, float]:
        """Return the `machine` argument of the exercise."""
        return {"bandwidth_gbps": self.bandwidth_gbps, "tflops": self.tflops}

    def __repr__(self) -> str:
        flat = f"{rate(self.tflops)}, {self.dtype} matrix product" if self.tflops else "arithmetic not recorded yet"
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
