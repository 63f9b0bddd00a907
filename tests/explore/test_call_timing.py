"""Stopwatches and kernel lists."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from html import escape
from pathlib import Path
from statistics import median

import pytest
import torch

from grader.explore import draw_times, list_kernels, time_after
from grader.explore.profiling.call_timing import KernelRun, Kernels, Timeline

TWO = Timeline(launches=((0.0, 0.1), (0.1, 0.2)), kernels=((0.05, 10.0), (10.0, 20.0)), waited_until=20.1, pretend=True)


def _alone(tmp_path: Path, code: str) -> str:
    """Return the output of code in a separate process without a GPU: a process cannot remove the pretend GPU."""
    root = Path(__file__).resolve().parents[2]
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": str(root), "CUDA_VISIBLE_DEVICES": "", "TRITON_INTERPRET": "1"},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_without_a_gpu_the_pretend_one_is_named_as_what_it_is(tmp_path: Path) -> None:
    """Its name says that it is pretend, its first call is slow, and its timeline shows the host waiting."""
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
first, later = ms(), min(ms() for _ in range(30))  # a busy machine adds to most calls, but hardly to all
assert later > 7, later  # a wait may end late, never early
assert first > 3 * later, (first, later)
print(draw_timeline(call, times=2).alt)
""",
    )
    assert "on a pretend GPU" in said
    assert "2 launches" in said


@pytest.mark.gpu
def test_on_a_gpu_the_call_is_real_and_its_launch_is_short() -> None:
    """The first call compiles; in a later call the launch takes a small share of the time."""
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
    assert "returned from 2 launches after 0.20 ms" in picture.alt
    assert "until 20.10 ms" in picture.alt
    assert TWO.draw() == picture


def test_times_are_drawn_with_median_and_mean() -> None:
    """An outlier moves the mean but not the median, and the alt text has both."""
    assert "3 calls" in draw_times([1.0, 1.0, 4.0]).alt
    assert "from 1 to 4 ms, median 1 ms, mean 2 ms" in draw_times([1.0, 1.0, 4.0]).alt
    with pytest.raises(ValueError, match="no time"):
        draw_times([])


def test_only_the_function_is_timed_and_not_what_comes_before() -> None:
    """On the CPU, code that runs before each call is not timed, and torch's thread count is restored."""
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
    """Half of the L2 cache is read faster if it is already cached."""
    x = torch.randn(torch.cuda.get_device_properties(0).L2_cache_size // 8, device="cuda")
    other = torch.empty(1 << 26, device="cuda")
    assert median(time_after(other.zero_, x.sum)) > 1.1 * median(time_after(x.sum, x.sum))


def _first(a: int) -> int:
    return a


@pytest.mark.skipif(torch.cuda.is_available(), reason="tests a machine without a GPU")
def test_kernels_are_not_listed_without_a_gpu() -> None:
    """Nothing runs, and no kernels are invented."""
    found = list_kernels(lambda: pytest.fail("must not run"), title="nothing recorded under this")
    assert len(found) == 0
    assert "only on a machine with a GPU" in repr(found)
    assert "needs a GPU" in repr(list_kernels(lambda: pytest.fail("must not run")))


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("void at::native::reduce_kernel<512, 1, at::native::Op<float> >(at::native::Op<float>)", "reduce_kernel"),
        ("void (anonymous namespace)::softmax_warp_forward<float, 10>(float*, int)", "softmax_warp_forward"),
        ("softmax_kernel", "softmax_kernel"),
        ("Memcpy DtoD (Device -> Device)", "Memcpy DtoD"),
    ],
)
def test_a_kernel_is_listed_by_its_function_name(name: str, short: str) -> None:
    """C++ names are pages long: the table shows the function's name, and the full name on hover."""
    shown = Kernels((KernelRun(name, 1.0),))
    assert f">{short}</td>" in shown._repr_html_()
    assert f"title='{escape(name)}'" in shown._repr_html_()
    assert repr(shown).splitlines()[0].endswith(f"  {short}")


@pytest.mark.gpu
def test_kernels_of_a_call_are_listed() -> None:
    """Two operations launch two kernels, listed in order, each with its time."""
    found = list_kernels(lambda x: (x + 1).exp(), torch.ones(1 << 20, device="cuda"))
    assert len(found) == 2
    assert all(run.time_us > 0 for run in found.runs)


def test_listed_kernels_can_be_recorded_and_shown_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A learner without a GPU sees the kernels that a benchmark recorded, marked as recorded."""
    rows = Kernels((KernelRun("vector: a", 3.5), KernelRun("vector: b", 2.0))).records("eager softmax")
    (tmp_path / "gpu.json").write_text(json.dumps([row | {"gpu": "H200"} for row in rows]))
    monkeypatch.setattr("grader.explore.drawing.recorded_results.RESULTS", tmp_path)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    found = list_kernels(_first, 1, title="eager softmax")
    assert [(run.name, run.time_us) for run in found.runs] == [("vector: a", 3.5), ("vector: b", 2.0)]
    assert "Recorded on one H200" in found._repr_html_()
