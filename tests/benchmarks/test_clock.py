"""The clock's bench finds a known error of the clock."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from benchmarks import pairs
from benchmarks.clock import _scaled, agree, scaled_case
from benchmarks.limits import Fault
from benchmarks.pairs import counted
from grader.exercises import find
from grader.judge.checking.buffers import Buffers
from grader.judge.gpu.ceilings import HostSpeed
from grader.judge.process.worker import Round
from grader.judge.score import Interval
from grader.judge.timing.clock import NO_DRIFT
from grader.judge.timing.clock_choice import Reading

LAUNCH_S = 200e-6
CONSTANT_S = 150e-6


class Fixed:
    """A clock that subtracts a constant."""

    def __init__(self, constant_s):
        self.constant_s, self.host_speed = constant_s, HostSpeed()
        self.of_the_host = self

    def excess(self, trusted, strained):
        return NO_DRIFT

    def drift(self, trials):
        return NO_DRIFT

    def tells(self, one):
        return True

    def takes_too_much(self, trials):
        return False

    def read(self, layout, one, drift, trusted=False):
        own_s = one.work_s - self.constant_s
        return Reading(own_s / len(layout.launches), one.event_s / len(layout.launches), trusted)


class Copies:
    """A worker whose kernel takes `LAUNCH_S`, on a machine whose switch costs `CONSTANT_S`."""

    left_s = 90.0

    def plan(self, layout):
        self.layout = layout

    def round(self, name, buffers, limit_s, head_start):
        for launch in self.layout.launches:
            buffers._view(launch["out"]).copy_(buffers._private(launch["x"]))
        event_s = LAUNCH_S * len(self.layout.launches)
        return Round(0.0, event_s + CONSTANT_S, 0.0, event_s, SimpleNamespace(take=bytes), b"")

    def freeze(self):
        pass

    thaw = freeze


@pytest.mark.parametrize("constant_s", [CONSTANT_S, 0.0])
def test_an_error_of_the_clock_is_found(constant_s):
    """A clock that subtracts the right constant agrees with the events. Otherwise it is off by the constant's share."""
    machine = SimpleNamespace(copy_gbps=1.0, peak_tflops=1e3, l2_bytes=0, slowness=1.0)
    case = scaled_case(500, machine.copy_gbps)
    bench = SimpleNamespace(
        buffers=Buffers("simulator"), machine=machine, pool=SimpleNamespace(still=nullcontext),
        monitor=SimpleNamespace(aside=nullcontext),
        baseline_worker=lambda exercise, baselines: Copies(), clock_for=lambda base: Fixed(constant_s),
    )  # fmt: skip
    found = {
        name: value.middle
        for name, value in agree(bench, case, _scaled([case]), Copies(), 4, lambda launches: 2 * LAUNCH_S).items()
    }
    expected = 100 * (CONSTANT_S - constant_s) / (LAUNCH_S * found["launches"])
    assert found["launches"] > 1
    assert found["rounds_by_events"] == (0 if expected else 100)
    assert found["events_us"] == pytest.approx(1e6 * LAUNCH_S)
    assert found["arbiter_vs_events"] == pytest.approx(expected, abs=1e-6)
    assert found["counted_vs_events"] == pytest.approx(expected, abs=1e-6)
    assert found["counted_vs_another_process"] == pytest.approx(50 * (1 + expected / 100) - 100, abs=1e-6)


@pytest.mark.parametrize("duration_us", [10, 100, 5000, 50_000])
def test_a_case_is_as_long_as_it_says(duration_us):
    """Its bytes over the copy bandwidth are its duration, up to rounding to whole passes."""
    case = scaled_case(duration_us, 4000.0)
    exercise = _scaled([case])
    assert exercise.bytes_moved(case) / 4000e9 == pytest.approx(duration_us * 1e-6, rel=0.2)


def test_pairs_are_counted():
    """Right, right with a tie, wrong, and wrong without a tie."""
    pairs = [((1.0, 0.99, 1.01), (0.97, 0.96, 0.98)), ((1.0, 0.97, 1.01), (0.98, 0.96, 0.99)),
             ((0.97, 0.96, 0.99), (0.98, 0.97, 1.0)), ((0.97, 0.96, 0.98), (1.0, 0.99, 1.01))]  # fmt: skip
    rows = [{"fast": list(fast), "slow": list(slow)} for fast, slow in pairs]
    assert counted(rows) == {"pairs": 4, "ranked_right": 2, "told_apart": 1, "told_apart_wrongly": 1}


def test_two_submissions_are_adjusted_until_they_are_three_percent_apart(monkeypatch):
    """The difference is measured, because repeated work may cost more or less than the rest."""
    tried = []

    def apart(exercise, fast, slow):
        tried.append(float(slow.name.split()[0]))
        return Interval(*[60 * (tried[-1] - 1)] * 3)

    monkeypatch.setattr(pairs, "_apart", apart)
    times, found = pairs._tuned(find("vector_add"))
    assert found.middle == pytest.approx(3.0, abs=0.2)
    assert f"{times:g}" == f"{tried[-1]:g}"
    assert tried[0] == pytest.approx(1.03)
    monkeypatch.setattr(pairs, "_apart", lambda *_: Interval(9.0, 9.0, 9.0))
    with pytest.raises(Fault, match="the last were 9"):
        pairs._tuned(find("vector_add"))


def test_a_bench_of_pairs_that_is_called_again_continues_with_the_same_two(monkeypatch, tmp_path):
    """A new pair would be another distance apart, and the rows so far would not be its own."""
    monkeypatch.setattr(pairs, "_apart", lambda *_: Interval(3.1, 3.0, 3.2))
    first = pairs._tuned_once(find("vector_add"), tmp_path / "pairs.jsonl")
    monkeypatch.setattr(pairs, "_apart", lambda *_: Interval(2.9, 2.8, 3.0))
    assert pairs._tuned_once(find("vector_add"), tmp_path / "pairs.jsonl") == first
    assert first[2] == Interval(3.1, 3.0, 3.2)
    assert pairs._tuned_once(find("vector_add"), tmp_path / "others.jsonl") != first
