"""Put a cause of slowness into words, and put several in the order of what their cures may bring."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from grader.verdict import Cause

__all__ = ["BASES", "Cause", "divided", "gain", "in_times", "ranked", "sentence"]

BASES = {
    "accesses": "accesses counted in the simulator",
    "calls": "one observed call",
    "code": "the compiled code",
    "source": "the text of the cell",
    "times": "the measured times",
}
_ASSUMED = {"built in each call": 10_000.0, "many launches": 1000.0}  # of unknown gains, for their order only
_MOST = 100.0  # a larger ratio is not stated
_WORTH = 1.1  # a cause that would bring less is not one
_COUNTED = ("repeated reads", "extra traffic", "extra operations", "partial warps")  # their ratios can be relied on
_OF_THE_HOST = ("built in each call",)  # the GPU's time does not show it
_UNKNOWN = 2.0  # stands for a ratio that is not known, where several causes share the time


def in_times(ratio: float) -> str:
    """Return "2.5 times", or "more than 100 times"."""
    return f"{ratio:.2g} times" if ratio <= _MOST else f"more than {_MOST:.0f} times"


def gain(cause: Cause) -> str:
    """Return the gain of the cure: "up to 8.0× faster", or "". A tiny case can make it absurdly large."""
    if cause.at_most is None:
        return ""
    if cause.at_most > _MOST:
        return f"more than {_MOST:.0f}× faster"
    return f"up to {cause.at_most:.0f}× faster" if cause.at_most >= 9.5 else f"up to {cause.at_most:.1f}× faster"


def sentence(cause: Cause) -> str:
    """All of it: the line, what was seen, the gain, the cure and what the cause rests on."""
    where = f"Line {cause.line}: " if cause.line else ""
    seen = cause.seen if not where or not cause.seen[:1].isalpha() else cause.seen[0].lower() + cause.seen[1:]
    brings = f"{gain(cause)}; " if cause.at_most is not None else ""
    return f"{where}{seen.removesuffix('.')}. {cause.cure.removesuffix('.')} ({brings}evidence: {BASES[cause.basis]})."


def divided(causes: Sequence[Cause], most: float | None) -> list[Cause]:
    """Divide `most`, the measured time over a good solution's, among the causes, whose gains multiply.

    A cause whose bytes or lanes were counted brings what they take. The others share what is left, by the logarithms of
    their own ratios, because those tell only which is larger. Without `most`, the ratios stay. If there is nothing to
    gain, the gain of work on the host is not known: the GPU's time need not show it.
    """
    if most is None:
        return list(causes)
    if most < _WORTH:
        return [one for one in causes if one.kind in _OF_THE_HOST]
    counted = {id(one): min(one.at_most, most) for one in causes if one.kind in _COUNTED and one.at_most is not None}
    rest = [one for one in causes if id(one) not in counted]
    left = max(1.0, most / math.prod(counted.values())) if counted else most
    weights = {id(one): math.log(max(_WORTH, one.at_most or _UNKNOWN)) for one in rest}
    shares = {of: left ** (weight / sum(weights.values())) for of, weight in weights.items()}
    return [replace(one, at_most=(counted | shares)[id(one)]) for one in causes]


def ranked(causes: Iterable[Cause]) -> tuple[Cause, ...]:
    """The causes that are worth a sentence, one of each kind, the largest gain first; an unknown gain may be any."""
    by_kind: dict[str, Cause] = {}
    for cause in causes:
        if cause.at_most is None or cause.at_most >= _WORTH:
            known = by_kind.setdefault(cause.kind, cause)
            by_kind[cause.kind] = replace(known, line=known.line or cause.line)  # a GPU does not tell every line
    return tuple(sorted(by_kind.values(), key=lambda cause: -(cause.at_most or _ASSUMED.get(cause.kind, 1.5))))
