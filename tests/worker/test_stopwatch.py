"""A round's own timing: the time between the two events, and failures with torch's message."""

from __future__ import annotations

import subprocess
import sys

import pytest

from grader.worker.simulator import start
from grader.worker.stopwatch import watch

_TIMED = """
import time
import torch
from grader.worker.stopwatch import watch

x = torch.ones(1 << 28, device="cuda")
for _ in range(3):
    own = watch("cuda")
    torch.cuda.synchronize()
    begun = time.perf_counter()
    own.start()
    for _ in range(20):
        x.neg_()
    own.stop()
    own.wait()
    took_s = time.perf_counter() - begun
print(own.seconds(), took_s)
"""
_FAILING = """
import torch
from grader.worker.stopwatch import watch

own = watch("cuda")
own.start()
torch.zeros(4, device="cuda")[torch.tensor([9], device="cuda")]
own.stop()
own.wait()
"""


def _ran(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)


def test_the_simulator_has_no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is work to wait for, and it may fail."""

    def fails() -> None:
        raise RuntimeError("a kernel failed")

    own = watch("simulator")
    own.start()
    own.stop()
    monkeypatch.setattr(start, "synchronize", fails)
    with pytest.raises(RuntimeError, match="a kernel failed"):
        own.wait()
    assert own.seconds() is None


@pytest.mark.gpu
def test_events_measure_the_gpus_time() -> None:
    """They cover almost all of the host's time, and no more."""
    done = _ran(_TIMED)
    assert done.returncode == 0, done.stderr
    events_s, host_s = map(float, done.stdout.split())
    assert 0.97 * host_s < events_s < host_s


@pytest.mark.gpu
def test_what_fails_on_the_gpu_fails_in_the_words_of_torch() -> None:
    done = _ran(_FAILING)
    assert done.returncode == 1
    assert "device-side assert triggered" in done.stderr
    assert "torch.cuda.synchronize" in done.stderr or "_cuda_synchronize" in done.stderr
