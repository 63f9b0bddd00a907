"""Tests of grader.classroom.inbox: one submission that cannot be fetched costs nobody else theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.classroom import commands
from grader.errors import ClassroomError
from tests.classroom.conftest import ASSIGNMENT, Classroom, ObedientJudge, solve

WHEN = "2026-03-01 10:00:00.000000 UTC"


@pytest.fixture
def inbound(classroom: Classroom) -> Path:
    """Where the exchange keeps what learners submit."""
    return classroom.folder.with_name("course-exchange") / "gpu-course" / "inbound"


def submit(classroom: Classroom, inbound: Path, student: str, points: float) -> None:
    """What `nbgrader submit` leaves in the inbox."""
    handed_in = classroom.hand_in(student, solve(points)).parent
    (handed_in / "timestamp.txt").write_text(WHEN, encoding="utf-8")
    handed_in.rename(inbound / f"{student}+{ASSIGNMENT}+{WHEN}+abc")


def test_what_is_no_submission_is_named_and_passed_over(
    classroom: Classroom, inbound: Path, judge: ObedientJudge
) -> None:
    """Anyone may put anything there; it costs who bears its name their submission, and nobody else."""
    submit(classroom, inbound, "ann", 3)
    submit(classroom, inbound, "bob", 4)
    stray = inbound / f"ann+{ASSIGNMENT}+tomorrow"
    stray.mkdir()
    (inbound / f"zoe+{ASSIGNMENT}+{WHEN}+abc").touch()
    assert commands.status(classroom.folder).assignments[0].waiting == 3
    result = commands.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    assert [(s.student, s.score) for s in result.students] == [("bob", 4)]
    assert result.collected == 1
    assert f"Note: {stray} is no submission: remove it" in result.to_text()
    assert sum("cannot be collected" in note for note in result.warnings) == 2
    stray.rmdir()
    result = commands.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    assert [(s.student, s.score) for s in result.students] == [("ann", 3), ("bob", 4)]


def test_what_is_no_submission_alone(classroom: Classroom, inbound: Path, judge: ObedientJudge) -> None:
    """Nothing else is there: nobody has submitted, and it is named all the same."""
    (inbound / f"eve+{ASSIGNMENT}+tomorrow").mkdir()
    text = commands.autograde(classroom.folder, ASSIGNMENT).to_text()
    assert "Nobody has submitted" in text
    assert "Note: " in text
    assert "tomorrow is no submission" in text


def test_a_submission_in_anothers_name_is_named(
    classroom: Classroom, inbound: Path, judge: ObedientJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """nbgrader says so in its log; where all learners are one user of the machine, nothing can be told."""
    for student in ("ann", "bob"):
        submit(classroom, inbound, student, 3)
    assert commands.autograde(classroom.folder, ASSIGNMENT, feedback=False).warnings == ()
    monkeypatch.setattr("os.getuid", lambda: 54321)
    monkeypatch.setattr(Path, "owner", lambda entry: "jovyan")
    assert commands.autograde(classroom.folder, ASSIGNMENT, feedback=False).warnings == ()
    monkeypatch.setattr(Path, "owner", lambda entry: "ann")
    (warning,) = commands.autograde(classroom.folder, ASSIGNMENT, student="ann", feedback=False).warnings
    assert "bob's name and was put there by ann" in warning


def test_an_inbox_that_cannot_be_collected_at_all(
    classroom: Classroom, inbound: Path, judge: ObedientJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then it is the machine: the run ends, with nbgrader's own words."""
    submit(classroom, inbound, "ann", 3)
    monkeypatch.setattr("nbgrader.exchange.default.collect.check_mode", lambda *args, **options: False)
    with pytest.raises(ClassroomError, match="cannot be collected: You don't have read permissions"):
        commands.autograde(classroom.folder, ASSIGNMENT)
