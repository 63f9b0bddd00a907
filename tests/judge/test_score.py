"""Intervals that cover, and gates that doubt where the samples do not tell."""

import math
import random
from dataclasses import replace

import pytest

from grader.exercises import PACKAGED
from grader.judge.gpu.ceilings import Machine
from grader.judge.score import Interval, decide, geometric_mean, interval, lacks, unjudged_gates


def test_the_interval_covers_the_true_mean_as_often_as_it_says():
    """In 2000 sets of skewed times the interval holds the true median in 95 % or more, but not in nearly all."""
    source = random.Random(7)
    for count in (6, 7, 14, 28, 100):
        hits = 0
        for _ in range(2000):
            found = interval([math.exp(source.gauss(1.0, 0.5)) for _ in range(count)])
            hits += found.low <= math.e <= found.high
        assert 0.94 <= hits / 2000 <= 0.99, count


def test_noise_buys_no_benefit_of_the_doubt():
    """A kernel that is too slow stays too slow if it makes some of its rounds slower still."""
    ratios = [0.80 + 0.001 * turn for turn in range(28)]
    assert decide(interval(ratios), 0.95) == "failed"
    for noisy in range(1, 14):
        assert decide(interval([*ratios[noisy:], *[1e-4] * noisy]), 0.95) == "failed"


def test_few_samples_give_their_whole_range_at_least():
    """No sample of a handful can be left out, and the median lies inside."""
    assert interval([1.0, 1.1]) == Interval(1.05, 1.0, 1.1)
    assert interval([3.0, 1.0, 2.0, 5.0, 4.0]) == Interval(3.0, 1.0, 5.0)


@pytest.mark.parametrize("count", [3, 4, 5])
def test_the_interval_of_few_samples_covers_as_often_as_it_says(count):
    """The range of three to five samples is too short; Student's t corrects that for roughly normal noise."""
    source = random.Random(count)
    hits = 0
    for _ in range(4000):
        found = interval([source.gauss(10.0, 0.1) for _ in range(count)])
        hits += found.low <= 10.0 <= found.high
    assert 0.94 <= hits / 4000 <= 0.98


@pytest.mark.parametrize(("low", "high", "outcome"), [(1.2, 1.3, "passed"), (1.0, 1.19, "failed"), (1.1, 1.3, "doubt")])
def test_a_gate_passes_on_the_lower_bound_and_fails_on_the_upper(low, high, outcome):
    """Between the two bounds the outcome is "doubt"."""
    assert decide(Interval((low + high) / 2, low, high), 1.2) == outcome


def test_the_geometric_mean_multiplies():
    """Twice as fast and half as fast is as fast."""
    assert geometric_mean([2.0, 0.5]) == pytest.approx(1.0)


def test_no_interval_of_times_reaches_below_0():
    """Three rounds that differ by more than their mean; what may be negative, as a difference, has the whole width."""
    assert interval([1.0, 1.0, 2.0]).low == 1.0
    assert interval([0.24, 0.24, 0.5]).low > 0
    assert interval([-1.0, 1.0, 2.0]).low < -1.0


@pytest.mark.parametrize(
    ("capability", "outcome", "told"),
    [(7.5, "failed", 2), (8.9, "failed", 1), (9.0, "failed", 0), (7.5, "passed", 0), (0.0, "failed", 0)],
)
def test_a_gpu_that_lacks_what_a_gate_needs_is_told(capability, outcome, told):
    """A T4 has no tensor cores for Triton and no TMA; the note appears only where a gate was missed."""
    exercise = PACKAGED["matmul_open"]
    machine = Machine("cuda", "GPU", "", "", "", "", 1 << 20, 300.0, 8.0, capability=capability)
    gates = [replace(gate, outcome=outcome) for gate in unjudged_gates(exercise, needs_gpu=False)]
    assert len(lacks(exercise, gates, machine)) == told
