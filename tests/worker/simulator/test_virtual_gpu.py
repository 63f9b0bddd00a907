"""The pretend GPU follows a real one's rules. Each test runs in a separate process, as in a worker."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

_START = """
import time
from statistics import median
import torch
from grader.worker.simulator import virtual_gpu
from grader.worker.simulator.virtual_gpu import launch
virtual_gpu.install()

def event():
    return torch.cuda.Event(enable_timing=True)

def raises(kind, words, call):
    try:
        call()
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError("it did not raise")

def clock_ms():
    return 1e3 * time.perf_counter()
"""


def _run(tmp_path: Path, test: str) -> None:
    (tmp_path / "test.py").write_text(_START + test)
    root = Path(__file__).resolve().parents[3]
    # Hide a GPU, so that every machine behaves like one without.
    environment = os.environ | {"PYTHONPATH": str(root), "CUDA_VISIBLE_DEVICES": "", "TRITON_INTERPRET": "1"}
    ran = subprocess.run([sys.executable, "test.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_a_launch_returns_at_once_and_synchronising_waits_for_all_that_is_queued(tmp_path: Path) -> None:
    """A launch takes only its own time on the host, and kernels run one after another."""
    _run(
        tmp_path,
        """
def shot():
    begin = clock_ms()
    for _ in range(3):
        launch(30)
    returned = clock_ms() - begin
    torch.cuda.synchronize()
    return returned, clock_ms() - begin
shots = [shot() for _ in range(3)]
assert min(returned for returned, _ in shots) < 5, shots
assert all(done >= 90 for _, done in shots), shots
assert min(done for _, done in shots) < 115, shots  # less than a fourth launch would take
""",
    )


def test_events_measure_the_kernels_between_them(tmp_path: Path) -> None:
    """Two events are as far apart as the kernels between them, whatever waits or was queued before."""
    _run(
        tmp_path,
        """
def shot(wait):
    launch(10)
    start, end = event(), event()
    start.record()
    launch(20)
    launch(5)
    end.record()
    wait(end)
    assert end.query()
    return start.elapsed_time(end)
for wait in (
    lambda end: torch.cuda.synchronize(),
    lambda end: torch.cuda.current_stream().synchronize(),
    lambda end: torch.accelerator.synchronize(),
    lambda end: end.synchronize(),
):
    assert abs(median(shot(wait) for _ in range(3)) - 25) < 0.01
""",
    )


def test_the_event_of_any_device_is_the_gpus(tmp_path: Path) -> None:
    """`torch.Event` takes the device first, or none."""
    _run(
        tmp_path,
        """
start, end = torch.Event("cuda", enable_timing=True), torch.Event(enable_timing=True)
launch(100)  # the host is ahead of the queue, however busy the machine is
torch.accelerator.current_stream().record_event(start)
launch(20)
end.record()
end.synchronize()
assert abs(start.elapsed_time(end) - 20) < 0.01
""",
    )


def test_a_gap_on_the_host_shows_between_events(tmp_path: Path) -> None:
    """If the host launches slowly, the GPU's idle time counts too."""
    _run(
        tmp_path,
        """
start, end = event(), event()
start.record()
time.sleep(0.05)
launch(10)
end.record()
end.synchronize()
assert start.elapsed_time(end) >= 60
""",
    )


def test_events_that_cannot_be_read_say_so_in_the_words_of_torch(tmp_path: Path) -> None:
    """As on a GPU, an untimed, unrecorded or unreached event raises an error."""
    _run(
        tmp_path,
        """
start, end = event(), event()
raises(ValueError, "must be recorded", lambda: start.elapsed_time(end))
start.record()
launch(500)
end.record()
assert start.query() and not end.query() and not torch.cuda.current_stream().query()
raises(RuntimeError, "must be completed", lambda: start.elapsed_time(end))
untimed = torch.cuda.Event()
untimed.record()
raises(ValueError, "enable_timing=True", lambda: start.elapsed_time(untimed))
""",
    )


def test_the_timers_of_torch_and_triton_wait_for_it(tmp_path: Path) -> None:
    """`Timer` and `do_bench` find a call's time, and torch still reports no GPU."""
    _run(
        tmp_path,
        """
from torch.utils.benchmark import Timer
found = Timer("launch(10)", globals={"launch": launch}).blocked_autorange(min_run_time=0.2).median * 1e3
assert 10 <= found < 20, found  # the machine may be busy
import importlib.util
if importlib.util.find_spec("triton"):
    import triton
    virtual_gpu._installed = False
    virtual_gpu.install()
    from triton.testing import do_bench
    assert abs(do_bench(lambda: launch(10), rep=200, return_mode="median") - 10) < 0.01
assert not torch.cuda.is_available()
""",
    )


def test_what_a_simulated_kernel_did_wrong_is_still_raised(tmp_path: Path) -> None:
    """Synchronising also asks the simulator, whose own patches do not return."""
    _run(
        tmp_path,
        """
from grader.worker.simulator import start as simulator
from grader.worker.simulator import cuda_library
simulator.install()
assert torch.cuda.synchronize is virtual_gpu.synchronize
cuda_library._failures["some.so"] = lambda: b"threads wait"
raises(RuntimeError, "threads wait", torch.cuda.synchronize)
raises(RuntimeError, "threads wait", torch.cuda.current_stream().synchronize)
""",
    )
