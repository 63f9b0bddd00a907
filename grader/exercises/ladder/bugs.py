"""What bugs in a Lomb–Scargle kernel write, and the sentences that name them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from grader.exercise import Suspect
from grader.exercises.ladder.power import lombscargle, power

__all__ = ["HALF", "SUSPECTS"]

_FEWEST = 200  # frequencies: of fewer, two bugs may well write the same
_NEAR = 0.02  # of what the bug changes: so near to what it would write must be what was written


def _from(change: Callable[[Any], Any], near: float = _NEAR) -> Callable[[Any], Any]:
    """What a bug writes; what was written itself, where it is as near to that as float32 comes: powers can be tiny."""

    def output(a: Any) -> Any:
        if a["freqs"].numel() < _FEWEST:
            return None
        bug, got = change(a), a.get("got")
        this = got is not None and bool((got - bug).norm() <= near * (bug - a["expected"]).norm())
        return got if this else bug

    return output


def _other_power(sums_to: Callable[..., Any]) -> Callable[[Any], Any]:
    return _from(lambda a: lombscargle(a["t"], a["y"], a["freqs"], sums_to=sums_to))


def _atan2(cs: Any, difference: Any) -> Any:
    import torch

    return torch.atan2(cs, difference)


def _samples(which: slice) -> Callable[[Any], Any]:
    return _from(lambda a: lombscargle(a["t"][which], a["y"][which], a["freqs"]))


def _short_pi(phase: Any) -> Any:
    """What a range reduction leaves whose π has four decimals, exact as it is else."""
    return phase - 2 * 3.1416 * (phase / (2 * 3.1416)).round()


def _not_a_number(a: Any) -> Any:
    return a["expected"] * float("nan") if a["freqs"].numel() >= _FEWEST else None


def _double(a: Any) -> bool:
    """Whether the arrays of the case are of float64: few of their numbers are float32's as well."""
    return bool((a["t"].float().double() != a["t"]).any()) and a["freqs"].numel() > 1


def _halved(a: Any) -> Any:
    """What was written, where that is the first half and nothing behind it."""
    got = a["got"]
    return got if _double(a) and bool(got[-(-got.numel() // 2) :].isnan().all()) else None


HALF = Suspect(
    "The arrays are float64 here, and what was written is what a kernel of floats makes of their bytes: half of `out`, "
    "from their first halves. A kernel is built for one type: is the type a part of the cache's key, and does each "
    "type get its own text?",
    _halved,
)
SUSPECTS = (
    Suspect(
        "Every power is NaN: is memory read before anything was written to it? A new device array holds whatever lay "
        "there before: fill `y_dot`, or leave it out.",
        _not_a_number,
    ),
    Suspect(
        "This is the normalised power, 2 / Σy² times as large. Asked for is the unnormalised one.",
        _from(lambda a: a["expected"] * 2 / (a["y"] ** 2).sum()),
    ),
    Suspect(
        "Every power is twice what it should be: the sum of the two terms is halved.",
        _from(lambda a: 2 * a["expected"]),
    ),
    Suspect(
        "tau was divided by the frequency, not by twice the frequency: atan2 gives the angle 2 w tau.",
        _other_power(lambda w, xc, xs, cc, ss, cs: power(w, xc, xs, cc, ss, cs, _atan2(2 * cs, cc - ss) / w)),
    ),
    Suspect(
        "tau lacks the factor 2 of the sum of products: it is atan2(2 cs, cc - ss).",
        _other_power(lambda w, xc, xs, cc, ss, cs: power(w, xc, xs, cc, ss, cs, _atan2(cs, cc - ss) / (2 * w))),
    ),
    Suspect(
        "tau has the wrong sign: it is atan2(2 cs, cc - ss) / (2 w), with the cosines' squares first.",
        _other_power(lambda w, xc, xs, cc, ss, cs: power(w, xc, xs, cc, ss, cs, -_atan2(2 * cs, cc - ss) / (2 * w))),
    ),
    Suspect(
        "tau was left out: without the shift in time cosine and sine are not orthogonal on samples that lie unevenly.",
        _other_power(lambda w, xc, xs, cc, ss, cs: power(w, xc, xs, cc, ss, cs, 0 * w)),
    ),
    Suspect(
        "This is the classical periodogram, |Σ y exp(iwt)|² / N: on samples that lie unevenly the cosines' and the "
        "sines' squares do not add up to N / 2 each.",
        _from(lambda a: lombscargle(a["t"], a["y"], a["freqs"],
                                    sums_to=lambda w, xc, xs, cc, ss, cs: (xc**2 + xs**2) / (cc + ss))),
    ),
    Suspect("The last sample is missing from the sums: where does the loop over the samples end?",
            _samples(slice(0, -1))),
    Suspect("The first sample is missing from the sums: where does the loop over the samples begin?",
            _samples(slice(1, None))),
    Suspect(
        "The frequencies were taken for cycles and multiplied by 2π: they are angular already.",
        _from(lambda a: lombscargle(a["t"], a["y"], 2 * math.pi * a["freqs"])),
    ),
    Suspect(
        "The phase is off by more than the error budget allows, and the more the larger it is: a range reduction needs "
        "π in full, not 3.1416.",
        _from(lambda a: lombscargle(a["t"], a["y"], a["freqs"], turn=_short_pi), near=0.4),
    ),
    Suspect(
        "Each power stands at another frequency's place, the last first: which index has `freqs`, and which has `out`?",
        _from(lambda a: a["expected"].flip(0)),
    ),
)  # fmt: skip
