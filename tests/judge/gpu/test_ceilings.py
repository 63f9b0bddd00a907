"""The ceilings of the machine: the least time that a call takes, however slow it was at first."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest
import torch

from grader.judge.gpu import ceilings
from grader.judge.gpu import ceilings as paces
from grader.judge.gpu.ceilings import HostSpeed, slowness


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


@pytest.fixture
def taking(monkeypatch):
    """A `HostSpeed` whose work takes these seconds, one after the other."""

    def make(*seconds):
        edges = itertools.accumulate(itertools.chain.from_iterable((1.0, each) for each in seconds))
        monkeypatch.setattr(paces, "time", SimpleNamespace(perf_counter=lambda: next(edges)))
        return HostSpeed()

    return make


def test_an_interrupt_is_no_slow_processor(taking):
    """The fastest of a few tries counts."""
    host_speed = taking(40e-6, 90e-6, 41e-6, 90e-6, 90e-6, 42e-6, 90e-6, 60e-6, 70e-6)
    assert [host_speed.is_strained() for _ in range(3)] == [False, False, True]


def test_slow_is_two_fifths_more_than_the_fastest_that_was_seen(taking):
    """Whenever that was: the first is never slow, and a faster one makes slow what was not."""
    host_speed = taking(
        *(each for seconds in (60e-6, 61e-6, 40e-6, 55e-6, 57e-6, 60e-6, 40e-6) for each in [seconds] * 3)
    )
    assert [host_speed.is_strained() for _ in range(7)] == [False, False, False, False, True, True, False]


def test_it_takes_a_moment():
    """It takes some tens of microseconds of real work, short enough to run before and after each round."""
    host_speed = HostSpeed()
    for _ in range(200):
        host_speed.is_strained()
    assert 5e-6 < host_speed._least_s < 1e-3


@pytest.mark.parametrize(("seconds", "factor"), [(30e-6, 1.0), (6e-5, 1.0), (24e-5, 4.0)])
def test_limits_grow_on_a_slow_host_and_shrink_nowhere(taking, seconds, factor):
    """By how much longer than usual the processor takes at its best: a moment of other work makes no host slow."""
    taking(*(each for _ in range(paces._LOOKS // 2) for each in (seconds, 9 * seconds)))
    assert slowness() == pytest.approx(factor)
