"""Screening a submission before it runs: any text gives a sentence."""

import pytest

from grader.exercises import find
from grader.judge import screening
from grader.judge.screening import refuse

ADD = find("vector_add")
HUGE = "0x" + "f" * 5000  # Python reads it, and does not print it


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (f"x, y={HUGE}", "x, y=..."),
        (f"x: {HUGE}, /, *, out: int={HUGE}", "x, /, *, out=..."),
        ("x, y='\x1b[2J'", "x, y=..."),
        ("", ""),
    ],
    ids=["a default", "an annotation", "escapes", "nothing"],
)
def test_a_signature_is_shown_without_values_and_annotations(arguments, shown):
    """Either may be as long as the text, and is the learner's own; names and their kinds are what does not fit."""
    failure = refuse(f"def vector_add({arguments}): pass", ADD)
    assert failure.kind == "unusable"
    assert failure.message.startswith(f"The signature is vector_add({shown}); the grader calls vector_add(")


def test_a_long_signature_is_cut():
    """The sentence stays one."""
    failure = refuse(f"def vector_add({', '.join(f'argument{number}' for number in range(1000))}): pass", ADD)
    assert "…); the grader calls" in failure.message
    assert len(failure.message) < 400


def test_whatever_the_reading_raises_is_a_sentence(monkeypatch):
    """A text that is next in line is read while another is graded: it must not end that."""

    def raises(tree):
        raise ZeroDivisionError("of Python's own")

    monkeypatch.setattr(screening, "bindings", raises)
    failure = refuse("def vector_add(x, y, out): pass", ADD)
    assert (failure.kind, failure.message) == ("unusable", "The submission cannot be read (ZeroDivisionError).")


def test_a_name_with_endless_dots_is_told():
    """Before Python's parser is asked."""
    failure = refuse("import a" + ".a" * 1000 + "\ndef vector_add(x, y, out): pass", ADD)
    assert failure is not None
    assert failure.message == "Python cannot read the submission: a name has more than 32 dots."
