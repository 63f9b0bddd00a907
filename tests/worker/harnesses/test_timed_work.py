"""The work that a learner's timer measures."""

from __future__ import annotations

import time
from typing import Any

import pytest

from grader.worker.harnesses import timed_work
from grader.worker.simulator import virtual_gpu

torch = pytest.importorskip("torch")


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Record the launches on the pretend GPU, which is not installed in this process."""
    found: list[float] = []
    monkeypatch.setattr(virtual_gpu, "install", lambda: None)
    monkeypatch.setattr(virtual_gpu, "launch", found.append)
    return found


def test_a_call_launches_each_kernel_for_the_time_that_its_bytes_take(launched: list[float]) -> None:
    """Every call launches all kernels in order; megabytes divided by GB/s are milliseconds."""
    function = timed_work.callable_of({"first_ms": 0, "virtual": [[100, 50], [30, 60]]})
    assert launched == []
    function()
    function()
    assert launched == [2, 0.5] * 2


def test_only_the_first_call_is_slow(launched: list[float]) -> None:
    """The first call waits on the host before it launches; later ones do not."""
    function = timed_work.callable_of({"first_ms": 300, "virtual": [[1, 1]]})

    def seconds() -> float:
        begin = time.perf_counter()
        function()
        return time.perf_counter() - begin

    assert seconds() >= 0.3
    assert min(seconds() for _ in range(3)) < 0.1


@pytest.mark.gpu
@pytest.mark.parametrize("operation", timed_work.OPERATIONS)
def test_real_work_takes_longer_the_more_there_is(operation: str) -> None:
    """Ten times as many launches take about ten times as long, so the GPU sets the time, not the host."""

    def ms(launches: int) -> float:
        size = 4096 if operation == "multiply" else 1 << 26
        function = timed_work.callable_of({"first_ms": 0, "operation": operation, "size": size, "launches": launches})
        function()
        torch.cuda.synchronize()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        function()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end))

    few, many = (min(ms(launches) for _ in range(3)) for launches in (4, 40))
    assert 8 < many / few < 12


@pytest.mark.parametrize(
    "operation",
    [
        {"kind": "copy", "shape": [8, 16]},
        {"kind": "convert", "shape": [8, 16], "to": "float16"},
        {"kind": "relu", "shape": [8, 16]},
        {"kind": "add", "shape": [8, 16]},
        {"kind": "add_row", "shape": [8, 16]},
        {"kind": "matmul", "batch": 1, "m": 8, "n": 16, "k": 4},
        {"kind": "matmul", "batch": 2, "m": 8, "n": 16, "k": 4},
    ],
)
def test_a_described_operation_works_on_random_numbers(operation: dict[str, Any]) -> None:
    """On ones a product would beat the ceiling, which was measured on random numbers."""
    found = timed_work.call_of({"dtype": "float32", **operation}, "cpu")()
    assert found.dtype == (torch.float16 if "to" in operation else torch.float32)
    assert found.shape[-2:] == (8, 16)
    assert len(found.unique()) > 30


def test_each_case_of_the_exercise_describes_work_that_can_be_done() -> None:
    """A draw fits the case's array, is new each time, and has all that the work needs."""
    from types import SimpleNamespace

    from grader.exercises.profiling.time_gpu import TIME_GPU
    from grader.protocol.channel import from_bytes

    machine: Any = SimpleNamespace(copy_gbps=4200.0, peak_tflops=680.0)
    assert TIME_GPU.draw is not None
    for case in (*TIME_GPU.cases, *TIME_GPU.simulator_cases):
        drawn = [from_bytes(TIME_GPU.draw(case, None, machine)["work"]) for _ in range(8)]
        assert len({str(one) for one in drawn}) > 1
        for one in drawn:
            if case.measured:
                assert one["operation"] in timed_work.OPERATIONS
                assert one["launches"] >= 1
                assert one["size"] <= 1 << 27
            else:
                total = sum(megabytes / gbps for megabytes, gbps in one["virtual"])
                assert 8 < total < 30
                assert total not in (value for pair in one["virtual"] for value in pair)
