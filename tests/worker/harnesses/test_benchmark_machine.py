"""The pretend GPU follows a real one's rules in simulated time, and this machine has the same methods."""

from __future__ import annotations

import inspect
import time

import pytest

from grader.worker.harnesses.benchmark_machine import PretendGpu, ThisMachine


def test_a_launch_returns_at_once_and_waiting_takes_the_kernels_time() -> None:
    """After a launch the clock shows the launch only; after synchronize it shows the kernel too."""
    gpu = PretendGpu()
    start = gpu.clock()
    gpu.run(1.0)
    assert gpu.clock() - start < 1e-4
    gpu.synchronize()
    assert gpu.clock() - start == pytest.approx(1.0, abs=1e-4)


def test_kernels_of_a_stream_run_one_after_another() -> None:
    """Three queued kernels take three times as long as one."""
    gpu = PretendGpu()
    for _ in range(3):
        gpu.run(1.0)
    gpu.synchronize()
    assert gpu.clock() == pytest.approx(3.0, abs=1e-3)


def test_streams_do_not_wait_for_each_other() -> None:
    """Work in two streams overlaps, and waiting for one stream does not wait for the other, unless it is told to."""
    gpu = PretendGpu()
    side = gpu.Stream()
    with gpu.stream(side):
        assert gpu.current_stream() is side
        gpu.run(2.0)
    gpu.run(1.0)
    gpu.current_stream().synchronize()
    assert gpu.clock() == pytest.approx(1.0, abs=1e-3)
    gpu.synchronize()
    assert gpu.clock() == pytest.approx(2.0, abs=1e-3)
    with gpu.stream(side):
        gpu.run(2.0)
    gpu.current_stream().wait_stream(side)
    gpu.run(1.0)
    gpu.synchronize()
    assert gpu.clock() == pytest.approx(5.0, abs=1e-3)


def test_events_measure_the_time_of_their_stream() -> None:
    """Times are in milliseconds, and an event in an idle stream does not see another stream's work."""
    gpu = PretendGpu()
    side, events = gpu.Stream(), [gpu.Event() for _ in range(4)]
    events[0].record()
    events[2].record(side)
    gpu.run(0.5)
    events[1].record()
    events[3].record(side)
    events[1].synchronize()
    assert events[0].elapsed_time(events[1]) == pytest.approx(500, abs=0.1)
    assert events[2].elapsed_time(events[3]) < 0.1


def test_an_event_that_was_not_reached_has_no_time() -> None:
    """As on a real GPU, it raises an error."""
    gpu = PretendGpu()
    start, end = gpu.Event(), gpu.Event()
    start.record()
    with pytest.raises(RuntimeError, match="recorded"):
        start.elapsed_time(end)
    gpu.run(1.0)
    end.record()
    with pytest.raises(RuntimeError, match="synchronize first"):
        start.elapsed_time(end)


def test_this_machine_has_the_same_methods() -> None:
    """The same calls run on a CPU, where work is done when a call returns."""
    public = {name for name, _ in inspect.getmembers(PretendGpu, inspect.isfunction) if not name.startswith("_")}
    assert public - {"wait_until"} <= set(dir(ThisMachine))
    cpu = ThisMachine("cpu")
    start, end, side = cpu.Event(), cpu.Event(), cpu.Stream()
    begun = time.perf_counter()
    with cpu.stream(side):
        start.record()
        cpu.run(0.01)
        end.record(side)
    cpu.synchronize()
    cpu.current_stream().synchronize()
    assert time.perf_counter() - begun >= 0.01
    assert start.elapsed_time(end) >= 10


@pytest.mark.gpu
def test_on_a_gpu_run_keeps_it_busy_for_so_long() -> None:
    """The GPU's own events agree within 10%, and the call returns at once."""
    gpu = ThisMachine("cuda")
    start, end = gpu.Event(), gpu.Event()
    start.record()
    begun = time.perf_counter()
    gpu.run(0.05)
    assert time.perf_counter() - begun < 0.02
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) == pytest.approx(50, rel=0.1)
