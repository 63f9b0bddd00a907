"""The roofline: its operations are counted by the formulas, and its pictures have alt text."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from grader.explore import draw_roofline, explore_roofline, recorded_roofline
from grader.explore.profiling import roofline
from grader.explore.profiling.machine_ceilings import Ceilings, Landed
from grader.explore.profiling.roofline import RooflineView, count, predict, recorded_ceilings, recorded_kernels

MACHINE = Ceilings("a machine", bandwidth_gbps=1000, tflops=50, dtype="float16")


def test_the_picture_says_its_numbers() -> None:
    """The alt text has the ceilings, the ridge and each point's share; the same call gives the same bytes."""
    points = (Landed("below", 1e9, 1e9, 2.0), Landed("above", 1e9, 1e9, 0.5))
    picture = draw_roofline(MACHINE, *points)
    assert (
        "memory, 1,000 GB/s; the flat one is arithmetic, 50 TFLOPS; they meet at 50 operations per byte" in picture.alt
    )
    assert "below: 1 op/B, 500 GFLOPS, 50 % of the roof" in picture.alt
    assert "above: 1 op/B, 2 TFLOPS, 200 % of the roof" in picture.alt
    assert picture.svg == draw_roofline(MACHINE, *points).svg
    ElementTree.fromstring(picture.svg)


@pytest.mark.parametrize("draw", [lambda: explore_roofline(MACHINE).picture, recorded_roofline])
def test_no_name_is_written_over_another(draw: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The names of the points keep clear of each other and of the names of the roofs."""
    monkeypatch.setattr(roofline, "_finished", lambda figure, *_: figure)
    figure = draw()
    figure.draw_without_rendering()
    [axes] = figure.axes
    found = [(text.get_text(), text.get_window_extent()) for text in axes.texts]
    assert [(a, b) for (a, one), (b, other) in itertools.combinations(found, 2) if one.overlaps(other)] == []


def _row(bench: str, case: str, metric: str, value: float) -> dict[str, Any]:
    return {"bench": bench, "case": case, "metric": metric, "value": value, "gpu": "GPU X", "date": "2026-01-01"}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    rows = [
        _row("ceilings", "large copy", "bandwidth_gbps", 2000),
        _row("ceilings", "float16 matrix product", "tflops", 400),
        _row("softmax", "4096 × 256", "median_us", 10) | {"date": "2026-01-02"},
        _row("softmax", "4096 × 1024", "median_us", 20),
        *(_row("roofline", f"matmul, {n} × {n}, float16", "bytes", 1e6) for n in (256, 8192)),
        *(_row("roofline", f"matmul, {n} × {n}, float16", "operations", 1e9) for n in (256, 8192)),
        *(_row("roofline", f"matmul, {n} × {n}, float16", "median_us", 5) for n in (256, 8192)),
    ]
    (tmp_path / "gpu-x.json").write_text(json.dumps(rows))
    return tmp_path


def test_a_recorded_gpu_is_drawn_with_its_kernels(results: Path) -> None:
    """Chosen exercises are drawn at their largest size, together with chosen points of PyTorch."""
    ceilings = recorded_ceilings(results)
    assert ceilings is not None
    assert (ceilings.machine, ceilings.bandwidth_gbps, ceilings.tflops) == ("GPU X", 2000, 400)
    landed = {one.name: one for one in recorded_kernels(results)}
    assert list(landed) == ["softmax, 4096 × 1024", "matmul, 256 × 256, float16"]
    assert landed["softmax, 4096 × 1024"].gbps == pytest.approx(2 * 4 * 4096 * 1024 / 20 / 1e3)
    assert landed["matmul, 256 × 256, float16"].tflops == pytest.approx(200)
    assert "Roofline of GPU X. Recorded on one GPU X on 2026-01-01 and 2026-01-02." in repr(recorded_roofline(results))


def test_the_recorded_picture_has_at_most_eight_points() -> None:
    """More could not be told apart."""
    assert 4 <= len(recorded_kernels()) <= 8


def test_where_nothing_was_recorded_a_sentence_says_so(tmp_path: Path) -> None:
    """There is no picture."""
    assert "No recorded result yet" in repr(recorded_roofline(tmp_path))


@pytest.mark.parametrize(
    ("operation", "moved", "work"),
    [("add", 12, 1), ("square", 8, 1), ("softmax", 8, 5), ("matmul", 12, 200)],
)
def test_operations_are_counted_for_each_element(operation: str, moved: int, work: int) -> None:
    """100 × 100 matrices have these bytes and operations per element; float16 halves the bytes."""
    assert count(operation, 100) == (10_000 * moved, 10_000 * work)
    assert count(operation, 100, "float16") == (5_000 * moved, 10_000 * work)


def test_a_prediction_lies_on_the_roof() -> None:
    """The predicted time is the longer of the two times."""
    assert predict("add", 1000, "float32", MACHINE).ms == pytest.approx(12e6 / 1e12 * 1e3)
    assert predict("matmul", 1000, "float32", MACHINE).ms == pytest.approx(2e9 / 50e12 * 1e3)


def test_widgets_and_picture_carry_the_same_message() -> None:
    """JupyterLab gets the controls; other front ends get a picture with alt text."""
    view = RooflineView({"a machine": MACHINE})
    bundle = view._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert "alt=" in bundle["text/html"]
    assert "matmul, 2,048 × 2,048, float32: 341 op/B, 50 TFLOPS" in bundle["text/plain"]
    assert "limited by memory" in view.shown("a machine", "add", 4096, "float32")
    assert "limited by arithmetic" in view.shown("a machine", "matmul", 4096, "float32")


def test_another_choice_redraws_the_picture() -> None:
    """Moving a control changes the picture and the sentence below it."""
    widget = RooflineView({"a machine": MACHINE}).widget()
    controls, picture = widget.children
    assert "limited by memory" in picture.value
    controls.children[2].value = 4096
    assert "limited by arithmetic" in picture.value


def test_a_machine_that_nobody_measured_cannot_be_explored() -> None:
    """Without ceilings there is no predicted time."""
    with pytest.raises(ValueError, match="measure_ceilings"):
        explore_roofline()
