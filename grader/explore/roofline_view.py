"""The roofline to play with: choose an operation, its size and type, and see which ceiling it meets and how long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from grader.explore.ceilings import Ceilings, Landed, figures, rate
from grader.explore.picture import Picture
from grader.explore.roofline import draw_roofline, recorded_ceilings

__all__ = ["RooflineView", "count", "explore_roofline", "predict"]

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
    """Bytes and operations on matrices of `n` × `n`; the softmax is fused, the matrix product reads each input once."""
    size = _ITEM_BYTES[dtype]
    matrices = {"add": 3, "square": 2, "mean": 1, "softmax": 2, "matmul": 3}[operation]
    work = {"softmax": 5, "matmul": 2 * n}.get(operation, 1) * n * n
    return matrices * n * n * size + (size if operation == "mean" else 0), work


def predict(operation: str, n: int, dtype: str, ceilings: Ceilings) -> Landed:
    """The operation, in the time that the ceilings allow."""
    moved, work = count(operation, n, dtype)
    roof_ms = work / ceilings.roof(work / moved) / 1e9
    return Landed(f"{operation}, {n:,} × {n:,}, {dtype}", moved, work, roof_ms)


@dataclass(frozen=True)
class RooflineView:
    """Controls beside a roofline. Where no widget can run, the picture shows several choices at once."""

    machines: Mapping[str, Ceilings]

    @property
    def picture(self) -> Picture:
        """What is shown without widgets: a growing matrix product, and two operations that stay where they are."""
        ceilings = next(iter(self.machines.values()))
        return draw_roofline(ceilings, *(predict(*one, ceilings) for one in _STILL), predicted=True)

    def shown(self, machine: str, operation: str, n: int, dtype: str) -> str:
        """The roofline with one choice, and the sentences below it, as HTML."""
        ceilings = self.machines[machine]
        one = predict(operation, n, dtype, ceilings)
        memory_ms, compute_ms = one.bytes_moved / ceilings.bandwidth_gbps / 1e6, one.operations / ceilings.tflops / 1e9
        limit = "memory" if memory_ms >= compute_ms else "arithmetic"
        said = (
            f"{one.bytes_moved:,.0f} bytes take {_time(memory_ms)}. {one.operations:,.0f} operations take "
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

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        picture = self.picture
        still = {"text/plain": repr(picture), "text/html": picture._repr_html_()}
        try:
            bundle: dict[str, Any] = self.widget()._repr_mimebundle_()
        except ImportError:
            return still
        return bundle | still


def explore_roofline(*machines: Ceilings) -> RooflineView:
    """Choose an operation, a size and a data type, and see where it lies on the roofline: yours, or a recorded GPU's.

    Raises:
        ValueError: no machine, or one whose arithmetic is not known.
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
