"""Put a cause of slowness into words, and put several in the order of what their cures may bring."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from grader.verdict import Cause

__all__ = ["BASES", "WORTH", "Cause", "gain", "in_times", "ranked", "sentence"]

BASES = {
    "accesses": "accesses counted in the simulator",
    "calls": "one observed call",
    "code": "the compiled code",
    "source": "the text of the cell",
    "times": "the measured times",
}
_ASSUMED = {"built in each call": 10_000.0, "many launches": 1000.0}  # stand for ratios that are not known
_MOST = 100.0  # a larger ratio is not stated
WORTH = 1.05  # a cause that would bring less is not one, and a smaller share is not stated
_OF_THE_HOST = ("built in each call",)  # the GPU's time does not show it
_UNKNOWN = 2.0  # stands for any other ratio that is not known


def in_times(ratio: float) -> str:
    """Return "2.5 times", or "more than 100 times"."""
    return f"{_rounded(ratio)} times"


def gain(cause: Cause) -> str:
    """Return the gain of the cure: "up to 8.0× faster", "estimated 8.0× faster, not timed", or "".

    A tiny case can make it absurdly large.
    """
    if cause.at_most is None or cause.at_most < WORTH:
        return ""
    faster = f"{_rounded(cause.at_most)}× faster"
    if not cause.timed:
        return f"estimated {faster}, not timed"
    return faster if cause.at_most > _MOST else f"up to {faster}"


def _rounded(ratio: float) -> str:
    """Return "2.5", "33", or "more than 100"."""
    if ratio > _MOST:
        return f"more than {_MOST:.0f}"
    return f"{ratio:.0f}" if ratio >= 9.5 else f"{ratio:.1f}"


def sentence(cause: Cause) -> str:
    """All of it: the line, what was seen, the gain, the cure and what the cause rests on."""
    where = f"Line {cause.line}: " if cause.line else ""
    seen = cause.seen if not where or not cause.seen[:1].isalpha() else cause.seen[0].lower() + cause.seen[1:]
    brings = f"{gain(cause)}; " if gain(cause) else ""
    return f"{where}{seen.removesuffix('.')}. {cause.cure.removesuffix('.')} ({brings}evidence: {BASES[cause.basis]})."


def ranked(causes: Iterable[Cause], most: float | None = None) -> tuple[Cause, ...]:
    """The causes that are worth a sentence, one of each kind, the largest gain first.

    `most` is the measured time over a good solution's. Gains multiply, so each cause gets a share of `log(most)`,
    in proportion to the logarithm of its own ratio, which only ranks the causes. If there is nothing to gain, the gain
    of work on the host is not known: the GPU's time need not show it.
    """
    by_kind: dict[str, Cause] = {}
    for cause in causes:
        if cause.at_most is None or cause.at_most >= WORTH:
            known = by_kind.setdefault(cause.kind, cause)
            by_kind[cause.kind] = replace(known, line=known.line or cause.line)  # a GPU does not tell every line
    found = sorted(by_kind.values(), key=lambda cause: -_ratio(cause))
    if most is None:
        return tuple(found)
    if most < WORTH:
        return tuple(one for one in found if one.kind in _OF_THE_HOST)
    total = sum(math.log(_ratio(one)) for one in found)
    return tuple(replace(one, at_most=most ** (math.log(_ratio(one)) / total), timed=True) for one in found)


def _ratio(cause: Cause) -> float:
    return cause.at_most or _ASSUMED.get(cause.kind, _UNKNOWN)
