"""Tests of grader.classroom.term.solutions: learners fetch them when nobody may hand in any more, and not before."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from grader.classroom.term.due_dates import extend, set_due_date
from grader.classroom.term.solutions import release_solutions
from grader.errors import ClassroomError
from tests.classroom.conftest import ASSIGNMENT, Classroom, ObedientJudge, solve


def hours_ago(hours: float) -> str:
    return (datetime.now(UTC) - timedelta(hours=hours)).isoformat()


def test_solutions_wait_for_the_due_date_and_each_extension(classroom: Classroom, judge: ObedientJudge) -> None:
    """Nothing is in the exchange until the last student's time is over."""
    outbound = classroom.folder.with_name("course-exchange") / "gpu-course" / "outbound"
    with pytest.raises(ClassroomError, match="no due date"):
        release_solutions(classroom.folder, ASSIGNMENT)
    set_due_date(classroom.folder, ASSIGNMENT, hours_ago(-1))
    with pytest.raises(ClassroomError, match=r"may hand in 03_triton until .* UTC"):
        release_solutions(classroom.folder, ASSIGNMENT)
    set_due_date(classroom.folder, ASSIGNMENT, hours_ago(3))
    classroom.hand_in("ann", solve(3))
    extend(classroom.folder, ASSIGNMENT, "ann", 5)
    with pytest.raises(ClassroomError, match="may hand in"):
        release_solutions(classroom.folder, ASSIGNMENT)
    assert [path.name for path in outbound.iterdir()] == [ASSIGNMENT]
    extend(classroom.folder, ASSIGNMENT, "ann", 2)
    assert release_solutions(classroom.folder, ASSIGNMENT).name == f"{ASSIGNMENT}-solutions"


def test_learners_get_the_solution_and_no_mark_of_nbgrader(classroom: Classroom) -> None:
    """The notebook runs as it is, everyone can read it, and the released assignment stays as it was."""
    released = classroom.released("03_fuse_a_softmax")
    first = release_solutions(classroom.folder, ASSIGNMENT, early=True)
    again = release_solutions(classroom.folder, ASSIGNMENT, early=True)
    assert first == again
    folder = classroom.folder.with_name("course-exchange") / "gpu-course" / "outbound" / first.name
    path = folder / "03_fuse_a_softmax.ipynb"
    assert path.stat().st_mode & 0o777 == 0o644
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    text = "\n".join(cell["source"] for cell in cells)
    assert "solved = 1" in text
    assert "SOLUTION" not in text
    assert "check(softmax)" in text
    assert not any("nbgrader" in cell["metadata"] for cell in cells)
    assert classroom.released("03_fuse_a_softmax") == released


def test_another_assignment_is_not_replaced(classroom: Classroom) -> None:
    """A course may have an assignment whose name is that of the solutions."""
    with classroom.gradebook() as gradebook:
        gradebook.add_assignment(f"{ASSIGNMENT}-solutions")
    with pytest.raises(ClassroomError, match="is an assignment itself"):
        release_solutions(classroom.folder, ASSIGNMENT, early=True)
