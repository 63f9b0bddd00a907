"""Tests of grader.words: a stranger's text in a sentence of ours."""

from __future__ import annotations

import pytest

from grader.feedback.sentences import message_of
from grader.verdict import Failure
from grader.words import harmless, on_one_line


def test_a_stranger_takes_nothing_else_away() -> None:
    """An escape that has no end would swallow the lines after it."""
    assert harmless("a\x1b]0;b\n\tc\u202ed") == "a?]0;b\n\tc?d"


def test_a_name_forges_no_line() -> None:
    """Whatever stands for a line feed."""
    assert on_one_line("x\n  bob 10 of 10\r\ty") == "x bob 10 of 10? y"


@pytest.mark.parametrize("written", [r"\x1b[2J", r"\x9b2J", r"\u202e", r"\ud800"])
def test_an_escape_that_is_written_out_stays_one(written: str) -> None:
    """Triton's errors wrap the text of others, which is unwrapped: it must not become what it spells."""
    said = message_of(Failure("exception", f"ValueError('{written}Passed')"))
    assert said.isprintable()
    assert "Passed" in said
