"""The bench records the host's part of the judge's rounds without changing the readings."""

import os
from types import SimpleNamespace

import pytest

from benchmarks.noise import listening, taken
from grader.judge.process.worker import Round
from grader.judge.timing.clock import Clock, Excess
from tests.judge.rounds import CLOCK, US

LAYOUT = SimpleNamespace(launches=("launch",) * 10, used={"inputs": 1e6}, case=SimpleNamespace(outputs=("out",)))
PROBE = SimpleNamespace(copies=10)


def test_a_rounds_excess_is_recorded_by_part():
    """It has the excess of switch, copy-in and probe, the competitor, the drifts, and whether the processor was slow.

    The clock's reading is unchanged.
    """
    one = Round(21 * US + 7 * US, 4e-3 + 150 * US + 240 * US, 40 * US + 3 * US, 4e-3, PROBE, b"")
    drift = Excess(10 * US, 2 * US, strained=True)
    expected = CLOCK.read(LAYOUT, one, drift, trusted=True)
    with listening() as heard:
        found = CLOCK.read(LAYOUT, one, drift, trusted=True)
        CLOCK.read(LAYOUT, Round(21 * US, 4e-3, 40 * US, None, PROBE, b""))  # it claims no time: not recorded
    assert found == expected
    assert [each.peer for each in heard] == ["baseline"]
    assert heard[0][1:] == pytest.approx((400, 240, 7, 3, 10, 2, 1))


def test_recording_ends_after_the_context():
    """The clock reads as before, even after an error."""
    before = Clock.read
    with pytest.raises(KeyError), listening():
        raise KeyError
    assert Clock.read is before


def test_what_the_host_takes_is_read_from_the_kernels_line(tmp_path):
    """The eighth time in the line for all processors counts, in seconds; preemptions are this process's own."""
    stat = tmp_path / "stat"
    stat.write_text("cpu  1 2 3 4 5 6 7 800 9 10\ncpu0 1 2 3 4 5 6 7 11 9 10\n", encoding="ascii")
    stolen_s, preempted = taken(str(stat))
    assert stolen_s == 800 / os.sysconf("SC_CLK_TCK")
    assert preempted >= 0
    assert taken()[0] >= 0
