"""Intervals and gates: 95 % Student's t intervals on logarithms, since times and ratios are positive and multiply."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev
from typing import Literal

__all__ = ["Interval", "decide", "geometric_mean", "interval"]

# two-sided 95 % quantiles of Student's t by degrees of freedom; between the entries the larger value is taken
_T95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228,
        12: 2.179, 15: 2.131, 20: 2.086, 25: 2.060, 30: 2.042, 60: 2.000}  # fmt: skip


@dataclass(frozen=True)
class Interval:
    """A median, and the 95 % interval of the (geometric) mean."""

    middle: float
    low: float
    high: float


def interval(samples: Sequence[float]) -> Interval:
    """Of positive samples, at least two."""
    logs = [math.log(sample) for sample in samples]
    freedom = len(logs) - 1
    quantile = _T95[max(known for known in _T95 if known <= freedom)]
    half = quantile * stdev(logs) / math.sqrt(len(logs))
    mean = fmean(logs)
    return Interval(median(samples), math.exp(mean - half), math.exp(mean + half))


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(fmean(math.log(value) for value in values))


def decide(ratio: Interval, at_least: float) -> Literal["passed", "failed", "doubt"]:
    """A gate passes on the lower bound and fails on the upper; between the two there is doubt."""
    if ratio.low >= at_least:
        return "passed"
    return "failed" if ratio.high < at_least else "doubt"
