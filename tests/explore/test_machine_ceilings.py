"""The ceilings of a machine, points below them and predictions follow the formulas."""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch

from grader.explore import land, measure_ceilings, try_predictions
from grader.explore.profiling import machine_ceilings
from grader.explore.profiling.machine_ceilings import Ceilings, Landed, figures, time_ms

MACHINE = Ceilings("a machine", bandwidth_gbps=1000, tflops=50, dtype="float16")


def test_the_roof_is_the_lower_of_two_lines() -> None:
    """Left of the ridge memory is the limit, right of it arithmetic."""
    assert MACHINE.ridge == 50
    assert [MACHINE.roof(x) for x in (0.25, 50, 1000)] == [0.25, 50, 50]


def test_a_point_is_what_was_counted_over_the_time() -> None:
    """2e9 bytes and 1e9 operations in a millisecond are 2,000 GB/s, 1 TFLOPS and half an operation per byte."""
    point = Landed("some", 2e9, 1e9, 1.0)
    assert (point.intensity, point.gbps, point.tflops) == (0.5, 2000, 1)
    assert repr(point) == "some: 0.5 operations per byte, 2,000 GB/s, 1 TFLOPS"


def test_a_count_that_cannot_be_drawn_is_refused() -> None:
    """A logarithmic axis cannot show 0."""
    with pytest.raises(ValueError, match="copy: bytes and operations must be positive"):
        land("copy", lambda: None, bytes_moved=8, operations=0)


def test_the_least_time_of_a_call_counts() -> None:
    """A call that is sometimes disturbed gets its undisturbed time, and torch's thread count is restored."""
    calls, threads = [], torch.get_num_threads()

    def call() -> None:
        calls.append(1)
        until = time.thread_time() + (0.02 if len(calls) % 2 else 0.005)
        while time.thread_time() < until:
            pass

    if not torch.cuda.is_available():
        assert 5 <= time_ms(call) < 7
    assert torch.get_num_threads() == threads


def test_this_machines_ceilings_are_measured() -> None:
    """Both are positive and shown with the machine's name."""
    found = measure_ceilings()
    assert found.bandwidth_gbps > 0.1
    assert found.tflops > 1e-4
    assert found.as_dict() == {"bandwidth_gbps": found.bandwidth_gbps, "tflops": found.tflops}
    assert found.machine in repr(found)


def test_a_prediction_is_tried_and_one_that_is_not_written_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each operation is run; a function that raises is reported, not raised."""
    monkeypatch.setattr(machine_ceilings, "_SIDE", {"cuda": 64, "cpu": 64})
    monkeypatch.setattr(machine_ceilings, "_PRODUCT", {"cuda": 64, "cpu": 64})
    slow = Ceilings("a machine", 1, 1, "float16" if torch.cuda.is_available() else "float32")

    def unwritten(operation: Any, machine: Any) -> float:
        raise NotImplementedError

    tried = try_predictions(lambda operation, machine: 2.0, slow)
    assert len(tried.rows) == 7
    assert all(predicted == 2.0 and measured > 0 for _, predicted, measured in tried.rows)
    assert "measured / predicted" in repr(tried)
    assert "write predict_ms first" in repr(try_predictions(unwritten, slow))
    assert "KeyError" in repr(try_predictions(lambda operation, machine: operation["none"], slow))


def test_figures_are_readable() -> None:
    """Numbers have three significant digits, and thousands have commas."""
    assert [figures(value) for value in (4124.7, 9.136, 0.08333)] == ["4,125", "9.14", "0.0833"]
