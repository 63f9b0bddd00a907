"""Predictions next to the values that were found."""

from __future__ import annotations

import pytest

from grader.explore import compare, count_predictions
from grader.explore.drawing import predictions
from grader.explore.drawing.predictions import ORDER_OF_MAGNITUDE


@pytest.mark.parametrize(
    ("prediction", "measured", "words"),
    [
        (..., 12, ["You have not written a prediction", "measured:  12 threads"]),
        (12, 12, ["predicted: 12 threads", "measured:  12 threads", "Right."]),
        (11.9, 12, ["Close.\n"]),
        (14.9, 12, ["Close.\n"]),
        (15.1, 12, ["Off by a factor of 1.3"]),
        ([0.8, 15], (0.8, 15), ["Right."]),
        ([0.7, 15], (0.8, 15), ["Close.\n"]),
        ([0.7, 15, 1], (0.8, 15), ["Not the same"]),
        ("exp, Sum", ["sum", "exp"], ["Right."]),
        (["add", "mul"], ("mul", "add"), ["Right."]),
        ({"add"}, ("mul", "add"), ["Not the same"]),
        ("an error", "an error", ["Right."]),
        ("error", "an error", ["Right."]),
        ("The error.", "an error", ["Right."]),
        ("a number", "an error", ["Not the same"]),
        ("12 threads", 12, ["predicted: 12 threads", "Right."]),
        ("1,200", 1200, ["Right."]),
        ("about 12 or 13", 12, ["Not the same"]),
        (3, 12, ["Off by a factor of 4.0"]),
        (24, 12, ["Off by a factor of 2.0"]),
        ((0, 7), (1, 0), ["Not the same"]),
        ("slower", 12, ["Not the same"]),
        (0, 12, ["Not the same"]),
        (True, 1.5, ["Not the same"]),
        (7, None, ["not on this machine"]),
        (2, 1, ["predicted: 2 threads", "measured:  1 thread\n"]),
    ],
)
def test_a_prediction_is_held_against_the_measurement(prediction, measured, words, capsys) -> None:  # type: ignore[no-untyped-def]
    """Any prediction gets both values and a comment, never an error."""
    compare(prediction, measured, "threads")
    text = capsys.readouterr().out
    for word in words:
        assert word in text


@pytest.mark.parametrize("how", ["measured", "computed", "recorded"])
def test_it_is_said_where_a_value_comes_from(how, capsys) -> None:  # type: ignore[no-untyped-def]
    """A computed or recorded value is not called measured."""
    compare(3, 4, "s", how=how)
    assert capsys.readouterr().out.splitlines()[1] == f"{how}:  4 s"


def test_an_order_of_magnitude_is_close_where_only_that_was_asked(capsys) -> None:  # type: ignore[no-untyped-def]
    """A factor of 4 is off, but close if the notebook asked for the order of magnitude."""
    compare(400, 100, "GB/s", within=ORDER_OF_MAGNITUDE)
    compare(4000, 100, "GB/s", within=ORDER_OF_MAGNITUDE)
    said = capsys.readouterr().out
    assert "Close: the order of magnitude is right." in said
    assert "Off by a factor of 40.0" in said


def test_a_notebook_ends_with_the_number_of_right_predictions(capsys, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """Each comparison counts once, as often as its cell is run, and predictions that were left out do not count."""
    monkeypatch.setattr(predictions, "_outcomes", {})
    count_predictions()
    for guess in (5, 2):
        compare(guess, 2)
    compare(3, 2)
    compare(..., 2)
    compare(1, None)
    count_predictions()
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("You wrote no predictions.")
    assert said[-1] == "1 of 2 predictions was right or close."
