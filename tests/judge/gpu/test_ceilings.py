"""The ceilings of the machine: the least time that a call takes, however slow it was at first."""

from types import SimpleNamespace

import pytest
import torch

from grader.judge.gpu import ceilings


class Gpu:
    """A torch whose events read their times from a list, repeating the last, on a clock that each call advances."""

    def __init__(self, milliseconds, step_s):
        self.milliseconds, self.step_s = list(milliseconds), step_s
        self.now, self.calls = 1000.0, 0
        self.cuda = SimpleNamespace(Event=lambda enable_timing: self)

    def record(self):
        pass

    synchronize = record

    def elapsed_time(self, end):
        self.now += self.step_s
        return self.milliseconds.pop(0) if len(self.milliseconds) > 1 else self.milliseconds[0]

    def call(self):
        self.calls += 1


@pytest.fixture
def seconds(monkeypatch):
    """The least seconds of a call, and how many calls it took to find them."""

    def measure(milliseconds, step_s=0.01):
        gpu = Gpu(milliseconds, step_s)
        monkeypatch.setattr(ceilings, "time", SimpleNamespace(monotonic=lambda: gpu.now))
        return ceilings._seconds(gpu, gpu.call), gpu.calls

    return measure


def test_the_least_counts(seconds):
    """Other work only adds time; one quiet call is enough."""
    assert seconds([5.0, 9.0, 3.0, 7.0, 5.0])[0] == pytest.approx(3e-3)


def test_a_gpu_that_wakes_up_is_waited_for(seconds):
    """Clocks that rise make each call faster: it goes on until they are steady."""
    found, calls = seconds([10.0 * 0.97**turn for turn in range(60)])
    assert found == pytest.approx(10e-3 * 0.97**59)
    assert calls > 60


def test_a_steady_gpu_is_not_measured_for_long(seconds):
    """Some calls at least, then a moment without a gain, and no end is put off by noise."""
    assert 5 <= seconds([3.0], step_s=1.0)[1] <= 20
    assert seconds([3.0, *[3.0 - 0.0001 * turn for turn in range(1000)]])[1] < 40


def test_the_product_multiplies_random_numbers(monkeypatch):
    """A GPU at its power limit multiplies ones faster: a limit from ones is one that no submission's data reaches."""
    multiplied = []
    fake = SimpleNamespace(
        float16=torch.float16,
        empty_like=torch.empty_like,
        ones=lambda *shape, dtype, device: torch.ones(*shape, dtype=dtype),
        randn=lambda *shape, dtype, device: torch.randn(*shape, dtype=dtype),
        mm=lambda a, b, out: multiplied.extend((a, b)),
    )
    monkeypatch.setattr(ceilings, "_PRODUCT_SIZE", 16)
    monkeypatch.setattr(ceilings, "_seconds", lambda of, call: call() or 1.0)
    assert ceilings._peak_tflops(fake) == pytest.approx(2 * 16**3 / 1e12)
    assert len(multiplied) == 2
    assert all(len(matrix.unique()) > 100 for matrix in multiplied)
