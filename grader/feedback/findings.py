"""What stands beside the score: findings, and what disturbed the timing. It takes no points and accuses nobody."""

from __future__ import annotations

import re
from dataclasses import dataclass

from grader.feedback.words import clean
from grader.verdict import Verdict

__all__ = ["BESIDE", "Remark", "beside", "to_look_at", "without_quotes"]

BESIDE = "These notes take no points. They are here for you to know, and for a person to look at."
_LABELS = {"rule": "Rules", "clock": "Clock", "disturbed": "Timing"}
_SAID_ABOVE = re.compile(r" It takes no points; [^.]*\.$")  # each rule's sentence stands alone elsewhere
_QUOTED = re.compile(r"`[^`]*`")


@dataclass(frozen=True)
class Remark:
    """One sentence (or a few), and the word that says what it is about."""

    label: str
    sentence: str


def beside(verdict: Verdict) -> tuple[Remark, ...]:
    """What is to be shown beside a verdict's score, each sentence once."""
    found = [Remark(_LABELS[each.kind], _SAID_ABOVE.sub("", clean(each.sentence))) for each in verdict.findings]
    found += [Remark(_LABELS["disturbed"], clean(note)) for note in verdict.environment.notes]
    return tuple({remark.sentence: remark for remark in reversed(found)}.values())[::-1]


def to_look_at(verdict: Verdict) -> list[str]:
    """What a person who grades should look at: a time that is held for review, and what stands beside the score."""
    failure = verdict.failure
    held = [failure.message] if failure is not None and failure.kind == "implausible" else []
    return [*held, *(f"{remark.label}: {remark.sentence}" for remark in beside(verdict))]


def without_quotes(remark: Remark) -> str:
    """The remark as it may be published: what stands in `backticks` is another's text, and may hold a name."""
    return f"{remark.label}: {_QUOTED.sub('…', remark.sentence)}"
