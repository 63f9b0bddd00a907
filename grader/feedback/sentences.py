"""From a wrong output to sentences that name the bug: what differs, where, and the question that leads to the cause."""

from __future__ import annotations

from grader.exercise import Case, Exercise
from grader.feedback.facts import Facts
from grader.feedback.questions import OUTSIDE, WRONG, ask
from grader.feedback.words import count, index, number, plural
from grader.verdict import Mismatch

__all__ = ["describe", "sentences", "told"]


def describe(mismatch: Mismatch, case: Case | None = None, exercise: Exercise | None = None) -> str:
    """All that can be said of a mismatch, in a few sentences; `case` and `exercise` sharpen the question at the end."""
    return " ".join(sentences(mismatch, case, exercise))


def sentences(mismatch: Mismatch, case: Case | None = None, exercise: Exercise | None = None) -> tuple[str, ...]:
    """The sentences of `describe`: the known bug first, then the facts, then one question for each kind of fault."""
    return told(Facts(mismatch, case, exercise))


def told(facts: Facts) -> tuple[str, ...]:
    """The same from all that is known: the text of the submission and its other wrong cases sharpen the questions."""
    mismatch = facts.mismatch
    found = [mismatch.suspect] if mismatch.suspect else []
    if mismatch.wrong:
        found.append(_differ(facts))
        if 0 < mismatch.unwritten < mismatch.wrong:
            found.append(f"{_of(mismatch.unwritten, 'these')} {_were(mismatch.unwritten)} never written.")
        if 0 < mismatch.not_finite < mismatch.wrong:
            found.append(f"{_of(mismatch.not_finite, 'these')} {_are(mismatch.not_finite)} NaN or infinite.")
        if not mismatch.suspect:
            found.append(ask(facts, WRONG))
    if mismatch.outside:
        found.append(_wrote_outside(facts))
        if not facts.padded:  # the stride is already asked for
            found.append(ask(facts, OUTSIDE))
    return tuple(sentence for sentence in found if sentence)


def _differ(facts: Facts) -> str:
    m, place = facts.mismatch, facts.place
    if facts.answer:
        others = "" if m.total == 1 else f" {_of(m.wrong, str(m.total))} answers {_are(m.wrong)} wrong."
        return f"`{facts.answer}`: got {number(m.got)}, expected {number(m.expected)}.{others}"
    if m.total == 1:
        who = f"The only element of `{m.output}`"
    elif m.wrong == m.total:
        who = f"All {count(m.total)} elements{facts.of_which}"
    else:
        who = f"{count(m.wrong)} of {count(m.total)} elements{facts.of_which}"
    one = m.wrong == 1
    if facts.unwritten:
        what = " was never written" if one else " were never written"
        return f"{who}{what}{_comma(place.phrase)}{_first(m, values=False) if place.kind != 'mid_row' else ''}."
    if m.not_finite == m.wrong:
        what = " is NaN or infinite where a finite value is expected"
        what = what if one else what.replace(" is ", " are ", 1)
        return f"{who}{what}{_comma(place.phrase)}{_first(m)}."
    what = " differs" if one else " differ"
    return f"{who}{what}{_comma(place.phrase)}{_first(m)}."


def _comma(phrase: str) -> str:
    return f", {phrase}" if phrase else ""


def _first(m: Mismatch, values: bool = True) -> str:
    if m.first_index is None:
        return ""
    said = f": got {number(m.got)}, expected {number(m.expected)}" if values and m.got != "never written" else ""
    if m.total == 1:
        return said
    where = f"at {index(m.first_index)}" if m.wrong == 1 else f"first at {index(m.first_index)}"
    return f"; {where}{said}"


def _wrote_outside(facts: Facts) -> str:
    m = facts.mismatch
    where = {
        "before": f"before the start of `{m.output}`",
        "between": f"between the rows of `{m.output}`",
        "beyond": f"between the rows and past the end of `{m.output}`",
        "after": f"past the end of `{m.output}`",
        "around": f"outside of `{m.output}`",
    }[facts.side]
    also = "The kernel also wrote" if m.wrong else "Every element is right, but the kernel wrote"
    return f"{also} {plural(m.outside, 'element')} {where}."


def _of(n: int, whom: str) -> str:
    return f"{count(n)} of {whom}"


def _were(n: int) -> str:
    return "was" if n == 1 else "were"


def _are(n: int) -> str:
    return "is" if n == 1 else "are"
