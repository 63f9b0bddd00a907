"""`benchmark` measures on a GPU, shows recorded results without one, and says which it shows."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import grader.notebook
from grader.errors import UnusableSubmission
from grader.exercises import find
from grader.notebook import speed_plot
from grader.verdict import Timing
from tests.notebook.conftest import raises

SOFTMAX = find("softmax")


def timings() -> list[Timing]:
    """Made-up times of the submission and of every baseline over the plot cases."""
    found = []
    for case in SOFTMAX.plot_cases:
        for peer, gbps in (("submission", 4000.0), ("torch", 2000.0), ("eager", 500.0), ("compile", 3000.0)):
            us = SOFTMAX.bytes_moved(case) / gbps / 1e3
            found.append(Timing(case.name, peer, us, us * 0.9, us * 1.25, gbps, gbps / 4250, 5, 16))
    return found


def rows(gpu: str = "NVIDIA H200", date: str = "2026-11-21T08:00:00") -> list[dict[str, Any]]:
    """Made-up results in the format of benchmarks/results."""
    common = {"metric": "bandwidth_gbps", "unit": "GB/s", "low": None, "high": None, "gpu": gpu, "date": date,
              "command": "make bench"}  # fmt: skip
    return [
        {"bench": bench, "case": case.name, "value": value, **common}
        for case in SOFTMAX.plot_cases
        for bench, value in (("softmax", 4000.0), ("softmax/torch", 2000.0), ("softmax/copy", 4250.0))
    ]


@pytest.fixture
def on_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grader.notebook, "device", lambda: "cuda")
    monkeypatch.setattr(grader.notebook, "gpu_name", lambda: "NVIDIA H200")


@pytest.fixture
def without_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grader.notebook, "device", lambda: "cpu")


def test_every_peer_has_a_line_with_its_interval() -> None:
    """The submission, each baseline and the copy bandwidth have one, with bandwidths computed from times."""
    found = speed_plot.measured(SOFTMAX, timings(), "NVIDIA H200")

    assert [series.label for series in found.series] == [
        "your softmax", "torch.softmax", "the eager sequence", "torch.compile", "measured copy bandwidth",
    ]  # fmt: skip
    first = found.series[0].points[0]
    assert (first.size, first.rate) == (256, 4000)
    assert (first.low, first.high) == pytest.approx((3200, 4444.4), rel=1e-3)
    assert found.series[-1].limit
    assert found.series[-1].points[0].rate == pytest.approx(4250)
    assert "NVIDIA H200" in found.origin


def test_the_plot_is_self_contained_and_described() -> None:
    """One SVG with alt text, in the theme's colours; lines differ in more than colour, and the numbers are below."""
    found = speed_plot.measured(SOFTMAX, timings())
    html = speed_plot.as_html(found)

    assert html.count("<svg") == 1
    assert 'role="img" aria-label="Plot of bandwidth in GB/s over N' in html
    assert "your softmax: 4,000 at 256, 4,000 at 32,768, at most 4,000." in html
    assert "currentColor" in html
    assert "#010203" not in html
    assert not {"<script", "<?xml", "<!DOCTYPE", "<metadata"} & {word for word in html.split() if word.startswith("<")}
    assert "src=" not in html
    assert len(set(speed_plot._STYLES)) == len({style[1:] for style in speed_plot._STYLES})
    assert "<td>2,000</td>" in html


def test_a_legend_is_as_wide_as_its_plot_at_most() -> None:
    """The names of the baselines of attention are long, so they are in two columns instead of three."""
    shown = speed_plot.recorded(find("attention"))
    assert shown is not None
    names = {series.label for series in shown.series}
    texts = re.findall(r'<text [^>]* x="([^"]+)"[^>]*>([^<]+)</text>', speed_plot.as_html(shown))
    assert len({x for x, text in texts if text in names}) == 2


def test_what_is_limited_by_arithmetic_is_plotted_in_tflops() -> None:
    """A product of 4096 takes 2 × 4096³ operations: in 200 µs that is 687 TFLOPS. The copy bandwidth is not a limit."""
    exercise = find("matmul")
    case = next(case for case in exercise.plot_cases if case.arrays[0].shape == (4096, 4096))
    gbps = exercise.bytes_moved(case) / 200e-6 / 1e9
    found = speed_plot.measured(exercise, [Timing(case.name, "submission", 200, 180, 250, gbps, gbps / 4250, 5, 16)])

    assert [series.label for series in found.series] == ["your matmul"]
    assert found.series[0].points[0].rate == pytest.approx(687.2, abs=0.1)
    assert found.series[0].points[0].low == pytest.approx(687.2 * 200 / 250, abs=0.1)
    for shown in (speed_plot.as_html(found), speed_plot.as_text(found), speed_plot.alt_text(found)):
        assert "TFLOPS" in shown
        assert "GB/s" not in shown


def test_a_periodogram_is_plotted_in_pairs() -> None:
    """A pair is a sample and a frequency: its bytes and operations do not measure the work."""
    exercise = find("ls_open")
    case = exercise.plot_cases[0]
    pairs = case.arrays[0].shape[0] * case.arrays[-1].shape[0]
    gbps = exercise.bytes_moved(case) / 1e-3 / 1e9
    found = speed_plot.measured(exercise, [Timing(case.name, "submission", 1e3, 900, 1100, gbps, None, 5, 16)])

    assert found.series[0].points[0].rate == pytest.approx(pairs / 1e-3 / 1e9)
    assert "billion pairs/s" in speed_plot.as_text(found)


def test_recorded_tflops_come_from_recorded_bandwidths(tmp_path: Path) -> None:
    """The rows have the same format for every exercise."""
    exercise = find("matmul")
    case = next(case for case in exercise.plot_cases if case.arrays[0].shape == (4096, 4096))
    gbps = exercise.bytes_moved(case) / 200e-6 / 1e9
    common = {"metric": "bandwidth_gbps", "unit": "GB/s", "low": None, "high": None, "gpu": "NVIDIA H200", "date": ""}
    made = [{"bench": bench, "case": case.name, "value": gbps, **common} for bench in ("matmul", "matmul/copy")]
    (tmp_path / "gpu.json").write_text(json.dumps(made))
    found = speed_plot.recorded(exercise, tmp_path)

    assert found is not None
    assert [series.label for series in found.series] == ["the course's matmul"]
    assert found.series[0].points[0].low == pytest.approx(687.2, abs=0.1)


def test_text_has_the_same_numbers() -> None:
    """The numbers are a table if nothing can be drawn."""
    text = speed_plot.as_text(speed_plot.measured(SOFTMAX, timings()))

    line = next(line for line in text.splitlines() if line.split()[:1] == ["781"])
    assert line.split() == ["781", "4,000", "2,000", "500", "3,000"]


def test_the_newest_recording_is_shown_as_recorded(tmp_path: Path) -> None:
    """Recorded results have their GPU, date and command, and do not pose as the learner's."""
    (tmp_path / "old.json").write_text(json.dumps(rows("NVIDIA A100", "2025-01-01T00:00:00")))
    (tmp_path / "new.json").write_text(json.dumps(rows()))
    (tmp_path / "broken.json").write_text("{")

    found = speed_plot.recorded(SOFTMAX, tmp_path)

    assert found is not None
    assert found.origin == "Recorded on one NVIDIA H200 on 2026-11-21 by `make bench`, not measured here."
    assert [series.label for series in found.series] == [
        "the course's softmax", "torch.softmax", "measured copy bandwidth",
    ]  # fmt: skip
    assert speed_plot.recorded(find("vector_add"), tmp_path) is None
    assert speed_plot.recorded(SOFTMAX, tmp_path / "nowhere") is None


@pytest.mark.usefixtures("without_gpu")
def test_without_a_gpu_the_recording_is_drawn(notebook: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge is not called, and no result is invented."""
    results = tmp_path / "results"
    results.mkdir()
    monkeypatch.setattr(speed_plot, "RESULTS", results)

    assert notebook.run("benchmark('softmax')").success
    assert "no results are recorded for this exercise yet" in notebook.text
    assert "<svg" not in notebook.html

    (results / "nvidia-h200.json").write_text(json.dumps(rows()))
    notebook.run("benchmark('softmax')")
    assert "Your kernel was not run: speed needs a GPU. Recorded on one NVIDIA H200" in notebook.html
    assert "Your kernel was not run: speed needs a GPU." in notebook.text
    assert "not measured here" in notebook.html
    assert "<svg" in notebook.html


@pytest.mark.usefixtures("on_gpu")
def test_on_a_gpu_the_cell_is_measured(notebook: Any, judge: Any) -> None:
    """The cell that defines the function is timed."""
    judge.act = timings
    cell = "def softmax(x, out):\n    pass"
    notebook.run(cell)

    result = notebook.run("benchmark(softmax)")

    assert result.success
    assert judge.asked == [(cell, "softmax")]
    assert "Measured now on NVIDIA H200" in notebook.html


@pytest.mark.usefixtures("on_gpu")
def test_what_is_wrong_is_not_measured(notebook: Any, judge: Any) -> None:
    """A solution that is not right gets a sentence instead of a plot, and the notebook goes on."""
    judge.act = raises(UnusableSubmission("The exercise is not written yet. `check(softmax)` says more."))
    notebook.run("def softmax(x, out):\n    pass\n")

    assert notebook.run("benchmark(softmax)").success
    assert notebook.text == "The exercise is not written yet. `check(softmax)` says more."
    assert "<code>check(softmax)</code>" in notebook.html


@pytest.mark.usefixtures("on_gpu")
def test_what_has_no_sizes_is_not_drawn(notebook: Any, judge: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exercise that asks questions has nothing to measure at several sizes, and says so."""
    monkeypatch.setattr(grader.notebook, "exercise_of", lambda exercise: replace(SOFTMAX, plot_cases=()))
    notebook.run("def softmax(x, out):\n    pass\n")

    assert notebook.run("benchmark(softmax)").success
    assert notebook.text == "softmax is not measured at several sizes; `check(softmax)` reports everything."
    assert judge.asked == []
