"""The nine lies in pictures and in a table."""

from __future__ import annotations

import pytest

from grader.exercises.profiling.audit import LIES
from grader.explore import draw_claims, draw_waits, show_lies
from grader.explore.profiling.benchmark_lies import QUESTIONS

_CLAIMS = {"no sync": 200.6, "hot data": 5.5, "constant data": 0.9}


def test_the_table_has_each_lie_of_the_exercise() -> None:
    """There are nine rows in the exercise's order; a lie that was not tried says so."""
    rows = show_lies(_CLAIMS).rows
    assert tuple(row[0] for row in rows) == LIES == tuple(QUESTIONS)
    assert [row[1] for row in rows[:3]] == ["201×", "5.50×", "not tried yet"]


def test_what_was_pretended_is_named_as_such() -> None:
    """The table and the picture mark lies tried on the pretend GPU, but not those that were not tried."""
    table = repr(show_lies(_CLAIMS, pretended=("no sync", "other stream")))
    assert table.count("on the pretend GPU") == 1
    assert "201×, on the pretend GPU" in table
    assert "201×, on the pretend GPU" in show_lies(_CLAIMS, pretended=("no sync",))._repr_html_()
    assert draw_claims(_CLAIMS, ("no sync",)).svg != draw_claims(_CLAIMS).svg


def test_the_pictures_say_what_they_show() -> None:
    """The claims are in the alt text."""
    alt = draw_claims(_CLAIMS).alt
    assert "no sync 201×; hot data 5.50×; constant data 0.90×" in alt
    assert "Other stream" in draw_waits().alt


def test_no_claims_are_an_error() -> None:
    """The message says which cells to run."""
    with pytest.raises(ValueError, match="nine lies first"):
        draw_claims({})
