"""Tests of grader.cli.output: progress on a terminal, and in the log of a machine where nobody watches."""

from __future__ import annotations

import pytest

from grader.cli import output
from grader.cli.output import Progress, duration


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time in seconds, which the test sets."""
    now = [0.0]
    monkeypatch.setattr(output.time, "monotonic", lambda: now[0])
    return now


def test_without_a_terminal_each_step_is_a_line_with_the_time_left(
    capsys: pytest.CaptureFixture[str], clock: list[float]
) -> None:
    """The stages within a step are left out, and the estimate begins with the steps that it is about."""
    with Progress(lines=True) as progress:
        progress("collecting", 0, 1)
        clock[0] = 100.0
        progress("grading ann", 0, 3)
        progress("grading ann: case 2", 0, 3)
        clock[0] = 400.0
        progress("grading bob", 1, 3)
    lines = [line.partition(" ")[2] for line in capsys.readouterr().err.splitlines()]
    assert lines == ["collecting (0/1)", "grading ann (0/3)", "grading bob (1/3), about 10 min left"]


def test_without_a_terminal_short_commands_are_silent(capsys: pytest.CaptureFixture[str]) -> None:
    """`grader check` reports its stages only on a terminal."""
    with Progress() as progress:
        progress("case 1", 0, 3)
    assert capsys.readouterr().err == ""


def test_on_a_terminal_one_line_is_overwritten(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shorter text covers the longer one before it, and nothing is left at the end."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with Progress(lines=True) as progress:
        progress("collecting", 0, 1)
        progress("x", 0, 0)
    err = capsys.readouterr().err
    assert "\n" not in err
    assert err.split("\r")[1:] == ["collecting (0/1)", f"{'x':<16}", " ", ""]


@pytest.mark.parametrize(("seconds", "text"), [(4.4, "4 s"), (95, "2 min"), (7500, "2 h 5 min"), (3599, "1 h 0 min")])
def test_durations_are_rough(seconds: float, text: str) -> None:
    """A person reads them."""
    assert duration(seconds) == text
