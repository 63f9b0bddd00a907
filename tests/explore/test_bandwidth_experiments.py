"""Experiments show their kernels and the origin of each number."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch

from grader.explore import experiment
from grader.explore.drawing import recorded_results
from grader.explore.memory.bandwidth_experiments import EXPERIMENTS, Measured, Run, samples_us


def _recorded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        {"bench": "bytes/stride", "case": case, "metric": "bandwidth_gbps", "value": value, "unit": "GB/s",
         "gpu": "NVIDIA Test", "date": "2026-01-01"}
        for case, value in (("stride 1", 800.0), ("stride 8", 200.0))
    ]  # fmt: skip
    (folder / "nvidia-test.json").write_text(json.dumps(rows))
    monkeypatch.setattr(recorded_results, "RESULTS", folder)


@pytest.mark.skipif(torch.cuda.is_available(), reason="with a GPU it is measured")
def test_without_a_gpu_what_was_recorded_is_shown_as_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers are shown with the GPU that they were measured on, and ratios are computed from them."""
    _recorded(tmp_path, monkeypatch)
    shown = experiment("stride").run()
    assert shown.how == "recorded"
    assert "Recorded on one NVIDIA Test on 2026-01-01" in shown._repr_html_()
    assert shown.ratio("stride 1", "stride 8") == 4
    assert "stride 8: 200" in shown.picture().alt


@pytest.mark.skipif(torch.cuda.is_available(), reason="with a GPU it is measured")
def test_where_nothing_is_recorded_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No number, no picture, no error."""
    monkeypatch.setattr(recorded_results, "RESULTS", tmp_path)
    shown = experiment("banks").run()
    assert shown.ratio("step 1", "step 32") is None
    assert shown.value("step 32") is None
    assert "No recorded result yet" in repr(shown)
    assert "<img" not in shown._repr_html_()


def test_an_experiment_is_shown_as_its_source() -> None:
    """The kernel shown is the kernel that runs; torch compiles only kernels declared extern "C"."""
    for name, each in EXPERIMENTS.items():
        assert repr(experiment(name)) == each.source
        assert each.source.startswith('extern "C" __global__')
        assert "&lt;" in each._repr_html_() or "<" not in each.source


def test_an_unknown_experiment_is_refused() -> None:
    """The message lists the known names."""
    with pytest.raises(ValueError, match="choose from stride, offset"):
        experiment("strides")


def test_bandwidth_is_useful_bytes_over_time_and_a_ratio_is_of_times() -> None:
    """8 MB in 2 µs is 4,000 GB/s; twice the time is a ratio of 2."""
    runs = {"a": Run("k", (1, 1, 1), (1, 1, 1), (), 8_000_000), "b": Run("k", (1, 1, 1), (1, 1, 1), (), 8_000_000)}
    assert experiment("stride").values({"a": 2.0, "b": 4.0}, runs) == {"a": 4000.0, "b": 2000.0}
    assert experiment("banks").values({"step 1": 2.0, "step 2": 4.0}, runs) == {"step 1": 1.0, "step 2": 2.0}


def test_a_chart_says_its_numbers() -> None:
    """The alt text has the value of each bar."""
    alt = Measured("bandwidth", "GB/s", {"one": 1.5, "two": 3000.0}, "", "measured").picture().alt
    assert re.search(r"one: 1\.5; two: 3,000\.", alt)


@pytest.mark.gpu
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_on_a_gpu_every_case_is_measured(name: str) -> None:
    """Every kernel compiles and runs, and each case has a time."""
    times, runs = samples_us(experiment(name), repeats=2)
    assert times.keys() == runs.keys()
    assert all(len(each) == 2 and min(each) > 0 for each in times.values())
    torch.cuda.empty_cache()
