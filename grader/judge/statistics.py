"""Medians with 95 % intervals that ask nothing of the distribution, where there are enough samples, and gates on them.

Times have outliers on one side, and a submission can make as many slow ones as it likes. The order statistics around
the median do not care how far off an outlier is, so noise cannot buy the benefit of the doubt.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev
from typing import Literal

__all__ = ["Interval", "decide", "geometric_mean", "interval", "quartile"]


_STUDENT = {3: 4.303, 4: 3.182, 5: 2.776}  # 97.5 % quantile of Student's t with n − 1 degrees of freedom, by n


@dataclass(frozen=True)
class Interval:
    """A median, and its 95 % interval."""

    middle: float
    low: float
    high: float


def interval(samples: Sequence[float]) -> Interval:
    """Of at least three samples, or the range of two. Of fewer than six the whole range covers the median in less than
    95 %: there it is widened to Student's t interval of the mean, but not below 0 where no sample is.

    As many samples lie below the true median as a coin that is tossed once for each shows heads: the ranks that may be
    left out on either side are those of a probability of at most 2.5 %.
    """
    ordered = sorted(samples)
    count, left_out = len(ordered), 0
    below = 1 / 2**count
    while (below := below + math.comb(count, left_out + 1) / 2**count) <= 0.025:
        left_out += 1
    low, high = ordered[left_out], ordered[count - 1 - left_out]
    if count in _STUDENT:
        middle, half = fmean(ordered), _STUDENT[count] * stdev(ordered) / math.sqrt(count)
        low = low if middle - half <= 0 < low else min(low, middle - half)
        high = max(high, middle + half)
    return Interval(median(ordered), low, high)


def quartile(samples: Iterable[float]) -> float:
    """One that a quarter of the samples do not exceed, where noise only adds; the least of all might be a lucky one."""
    ordered = sorted(samples)
    return ordered[(len(ordered) - 1) // 4]


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(fmean(math.log(value) for value in values))


def decide(ratio: Interval, at_least: float) -> Literal["passed", "failed", "doubt"]:
    """A gate passes on the lower bound and fails on the upper; between the two there is doubt."""
    if ratio.low >= at_least:
        return "passed"
    return "failed" if ratio.high < at_least else "doubt"
