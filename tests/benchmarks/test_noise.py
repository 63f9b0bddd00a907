"""What a host adds to the judge's rounds: heard without a change to what is read."""

import os
from types import SimpleNamespace

import pytest

from benchmarks.noise import listening, taken
from grader.judge.process.worker import Round
from grader.judge.timing.clock import Clock, Excess
from tests.judge.rounds import CLOCK, US

SPREAD = SimpleNamespace(launches=("launch",) * 10, used={"inputs": 1e6}, case=SimpleNamespace(outputs=("out",)))
LOOK = SimpleNamespace(copies=10)


def test_what_a_round_takes_longer_is_heard_part_by_part():
    """Of the switch, the copying-in and the look, whose round it was, the drifts, and whether the processor was slow;
    the reading is what it was.
    """
    one = Round(21 * US + 7 * US, 4e-3 + 150 * US + 240 * US, 40 * US + 3 * US, 4e-3, LOOK, b"")
    drift = Excess(10 * US, 2 * US, strained=True)
    expected = CLOCK.read(SPREAD, one, drift, trusted=True)
    with listening() as heard:
        found = CLOCK.read(SPREAD, one, drift, trusted=True)
        CLOCK.read(SPREAD, Round(21 * US, 4e-3, 40 * US, None, LOOK, b""))  # it claims no time: nothing to compare with
    assert found == expected
    assert [each.peer for each in heard] == ["baseline"]
    assert heard[0][1:] == pytest.approx((400, 240, 7, 3, 10, 2, 1))


def test_afterwards_nobody_listens():
    """The clock reads as before, whatever happened meanwhile."""
    before = Clock.read
    with pytest.raises(KeyError), listening():
        raise KeyError
    assert Clock.read is before


def test_what_the_host_takes_is_read_from_the_kernels_line(tmp_path):
    """The eighth of its times, over all processors, in seconds; and this process's own count of interruptions."""
    stat = tmp_path / "stat"
    stat.write_text("cpu  1 2 3 4 5 6 7 800 9 10\ncpu0 1 2 3 4 5 6 7 11 9 10\n", encoding="ascii")
    stolen_s, preempted = taken(str(stat))
    assert stolen_s == 800 / os.sysconf("SC_CLK_TCK")
    assert preempted >= 0
    assert taken()[0] >= 0
