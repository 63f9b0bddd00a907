"""The speed of the processor: slow against the fastest that was seen."""

import itertools
from types import SimpleNamespace

import pytest

from grader.judge.timing import host_speed as paces
from grader.judge.timing.host_speed import HostSpeed, slowness


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
