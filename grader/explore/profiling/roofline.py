"""Draw the roofline: the ceilings of a machine, kernels below them, and controls to try operations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.explore.drawing.displays import BLUE, DARK, GREY, ORANGE, Interactive, Picture, chart, finish
from grader.explore.drawing.recorded_results import Recorded, recorded
from grader.explore.profiling.machine_ceilings import Ceilings, Landed, figures, rate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEAST_RIDGE = 4.0
_SHORT = 54  # characters: lines up to this length go in two columns
_KERNELS_SHOWN = ("vector_add", "softmax", "fuse", "matmul")  # each at its largest size
_OTHERS_SHOWN = ("torch mean", "torch softmax", "matmul, 256 ", "matmul, 1024 ")
_PLACES = tuple((x, y) for y in (-13, -31, -49) for x in (10, -10))  # of a name below its point, in points
_ABOVE = 1.25  # times the roof: a point below this may be noise


def draw_roofline(ceilings: Ceilings, *landed: Landed, predicted: bool = False) -> Picture:
    """Draw the two ceilings on logarithmic axes, and one numbered, named point per call.

    Args:
        ceilings: from `measure_ceilings`.
        landed: from `land`.
        predicted: the points are predictions, which lie on the roof by definition.
    """
    unit, prefix = (1e3, "GFLOPS") if ceilings.tflops < 2 else (1.0, "TFLOPS")
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
    axes.set_title(ceilings.machine if ceilings.measured_here else ceilings.origin, loc="left", fontsize=12, color=DARK)
    axes.set_xlabel("arithmetic intensity: operations per byte", fontsize=11)
    axes.set_ylabel(f"operations per second: {prefix}", fontsize=11)
    axes.grid(which="major", color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.xaxis.set_major_formatter(_plain)
    axes.yaxis.set_major_formatter(_plain)
    figure.draw_without_rendering()  # lays it out
    _name_points(axes, landed, unit)
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


def _name_points(axes: Axes, landed: Sequence[Landed], unit: float) -> None:
    """Write each point's name in the first place below it that is inside the axes and free of other names."""
    frame = axes.get_window_extent()
    taken = [text.get_window_extent() for text in axes.texts if text.get_text()]
    for one in landed:
        name = axes.annotate(
            _label(one, landed), (one.intensity, unit * one.tflops), xytext=_PLACES[0], textcoords="offset points",
            va="center", fontsize=9, color=DARK,
        )  # fmt: skip
        for x, y in _PLACES:
            name.set(position=(x, y), horizontalalignment="left" if x > 0 else "right")
            extent = name.get_window_extent()
            if frame.x0 <= extent.x0 and extent.x1 <= frame.x1 and not any(map(extent.overlaps, taken)):
                break
        taken.append(name.get_window_extent())


def _x_range(ceilings: Ceilings, landed: Sequence[Landed]) -> tuple[float, float]:
    found = [one.intensity for one in landed]
    right = 8 * max(ceilings.ridge, _LEAST_RIDGE)
    return min([1 / 16, *(one / 2 for one in found)]), max([right, *(2 * one for one in found)])


def _roof(axes: Axes, ceilings: Ceilings, low: float, high: float, unit: float) -> None:
    corner = min(max(ceilings.ridge, low), high)
    slanted = [unit * x * ceilings.bandwidth_gbps / 1e3 for x in (low, corner)]
    axes.plot([low, corner], slanted, color=BLUE, linewidth=3.2, zorder=2, solid_capstyle="round")
    at = low * (corner / low) ** 0.72  # below the slanted roof, where there are few points
    axes.annotate(
        f"memory: {figures(ceilings.bandwidth_gbps)} GB/s", (at, unit * at * ceilings.bandwidth_gbps / 1e3),
        xytext=(14, -14), textcoords="offset points", va="center", fontsize=11, color=BLUE, weight="bold",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
    )  # fmt: skip
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
    points = "; ".join(_words(one, ceilings, predicted) for one in landed)
    alt = (
        f"Roofline of {ceilings.machine}. {origin}The slanted roof is memory, {figures(ceilings.bandwidth_gbps)} GB/s; "
        f"the flat one is arithmetic, {rate(ceilings.tflops)}; they meet at {figures(ceilings.ridge)} operations per "
        "byte." + (f" {'Predicted' if predicted else 'Points'}: {points}." if points else "")
    )
    with matplotlib.rc_context({"savefig.bbox": "tight"}):
        return finish(figure, alt, width=820)


def recorded_ceilings(folder: Path | None = None) -> Ceilings | None:
    """Return the most recently recorded GPU's float16 ceilings, or None without a record."""
    found = recorded("ceilings", "bandwidth_gbps", "tflops", folder=folder)
    gbps, tflops = found.value("bandwidth_gbps", "large copy"), found.value("tflops", "float16 matrix product")
    if gbps is None or tflops is None:
        return None
    return Ceilings(str(found.rows[0]["gpu"]), gbps, tflops, "float16", found.origin)


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
        ValueError: no machine.
    """
    if not machines:
        raise ValueError("explore_roofline needs the ceilings of a machine, as measure_ceilings() returns them.")
    recorded = recorded_ceilings()
    with_gpu = machines if recorded is None else [*machines, recorded]
    return RooflineView({one.machine: one for one in with_gpu})


def _time(ms: float) -> str:
    for size, unit in ((1e3, "s"), (1.0, "ms"), (1e-3, "µs")):
        if ms >= size:
            return f"{figures(ms / size)} {unit}"
    return f"{figures(ms * 1e6)} ns"
