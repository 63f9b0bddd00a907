"""Calls to be timed, and pictures of what a clock saw."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import pytest

from grader.explore import draw_times, time_after
from grader.explore.stopwatch import Timeline

torch = pytest.importorskip("torch")

TWO = Timeline(launches=((0.0, 0.1), (0.1, 0.2)), kernels=((0.05, 10.0), (10.0, 20.0)), waited_until=20.1, pretend=True)


def _alone(tmp_path: Path, code: str) -> str:
    """What the code prints in a process of its own that sees no GPU: the pretend one stays in the process for good."""
    root = Path(__file__).resolve().parents[2]
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120,
        env=os.environ | {"PYTHONPATH": str(root), "CUDA_VISIBLE_DEVICES": "", "TRITON_INTERPRET": "1"},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_without_a_gpu_the_pretend_one_is_named_as_what_it_is(tmp_path: Path) -> None:
    """Its name says that it is none, its first call is slow, and a timeline of it shows the host waiting."""
    said = _alone(
        tmp_path,
        """
import time, torch
from grader.explore import busy_gpu, draw_timeline
gpu = busy_gpu()
assert gpu.pretend and "pretend GPU" in repr(gpu) and "made up" in repr(gpu)
call = gpu.call()
def ms():
    begin = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - begin)
first, later = ms(), min(ms() for _ in range(3))
assert first > 150 > 13 > later > 7, (first, later)
print(draw_timeline(call, times=2).alt)
""",
    )
    assert "on a pretend GPU" in said
    assert "2 launches" in said


@pytest.mark.gpu
def test_on_a_gpu_the_call_is_real_and_its_launch_is_short() -> None:
    """The first call compiles; of a later one the launch is a small share, and the timeline says so."""
    from grader.explore import busy_gpu

    gpu = busy_gpu()
    assert not gpu.pretend
    call = gpu.call()
    begin = time.perf_counter()
    call()
    torch.cuda.synchronize()
    first_ms = 1e3 * (time.perf_counter() - begin)
    seen = Timeline.of(call, times=3)
    left, right = seen.kernels[1]
    assert 0.5 < right - left < first_ms
    assert seen.launches[-1][1] < 0.2 * seen.waited_until
    assert not seen.pretend


def test_a_timeline_says_in_words_when_host_and_gpu_were_done() -> None:
    """The alt text has both times, and the same timeline gives the same picture."""
    picture = TWO.draw()
    assert "through with 2 launches after 0.20 ms" in picture.alt
    assert "until 20.10 ms" in picture.alt
    assert TWO.draw() == picture


def test_times_are_drawn_with_median_and_mean() -> None:
    """One stray moves the mean and not the median, and the words tell both."""
    assert "3 calls" in draw_times([1.0, 1.0, 4.0]).alt
    assert "from 1 to 4 ms, median 1 ms, mean 2 ms" in draw_times([1.0, 1.0, 4.0]).alt
    with pytest.raises(ValueError, match="no time"):
        draw_times([])


def test_only_the_function_is_timed_and_not_what_comes_before() -> None:
    """On the CPU: what runs before each call is not in its time, and torch has its threads back afterwards."""
    if torch.cuda.is_available():
        pytest.skip("times the GPU on this machine")
    threads, calls = torch.get_num_threads(), []

    def function() -> None:
        calls.append("function")
        time.sleep(0.002)

    times = time_after(lambda: calls.append("before") or time.sleep(0.02), function, repeats=5)
    assert calls == ["before", "function"] * 5
    assert 2 <= median(times) < 15
    assert torch.get_num_threads() == threads


@pytest.mark.gpu
def test_on_a_gpu_a_cold_sum_takes_longer_than_a_warm_one() -> None:
    """Half of the L2 cache is read faster when it lies there already."""
    x = torch.randn(torch.cuda.get_device_properties(0).L2_cache_size // 8, device="cuda")
    other = torch.empty(1 << 26, device="cuda")
    assert median(time_after(other.zero_, x.sum)) > 1.1 * median(time_after(x.sum, x.sum))
