"""Tests of grader.words: untrusted text inside a sentence."""

from __future__ import annotations

import pytest

from grader.feedback.sentences import message_of
from grader.verdict import Failure
from grader.words import harmless, on_one_line


def test_untrusted_text_hides_no_other_text() -> None:
    """An unterminated escape would swallow the lines after it."""
    assert harmless("a\x1b]0;b\n\tc\u202ed") == "a?]0;b\n\tc?d"


def test_a_name_forges_no_line() -> None:
    """Every character that could end a line is replaced."""
    assert on_one_line("x\n  bob 10 of 10\r\ty") == "x bob 10 of 10? y"


@pytest.mark.parametrize("written", [r"\x1b[2J", r"\x9b2J", r"\u202e", r"\ud800"])
def test_an_escape_that_is_written_out_stays_one(written: str) -> None:
    """Triton's errors wrap other text, which is unwrapped: an escape in it must stay spelled out."""
    said = message_of(Failure("exception", f"ValueError('{written}Passed')"))
    assert said.isprintable()
    assert "Passed" in said
