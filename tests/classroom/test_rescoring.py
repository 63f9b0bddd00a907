"""Tests of grader.classroom.rescoring: points and dates change, verdicts stay, and nothing is judged."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from grader.classroom import class_actions
from grader.classroom.rescoring import rescore
from grader.errors import ClassroomError
from tests.classroom.conftest import ASSIGNMENT, Classroom, ObedientJudge, cell_of, solve
from tests.classroom.test_class_actions import change_points


def shown(classroom: Classroom, student: str) -> str:
    return "".join(cell_of(classroom.autograded(student), "check-softmax")["outputs"][0]["data"]["text/plain"])


def test_points_that_change_reach_everyone(classroom: Classroom, judge: ObedientJudge) -> None:
    """Release names whom a change of points touches; rescore brings gradebook, report and feedback to the new scale."""
    for student, points in (("ann", 3), ("bob", 0)):
        classroom.hand_in(student, solve(points))
    class_actions.autograde(classroom.folder, ASSIGNMENT)
    change_points(classroom, 20)
    released = class_actions.release(classroom.folder, ASSIGNMENT, force=True)
    assert "points of softmax changed after 2 students (ann, bob) were graded" in released.to_text()
    asked = len(judge.sources)
    result = rescore(classroom.folder, ASSIGNMENT)
    assert [(s.student, s.after, s.max_after) for s in result.students] == [("ann", 6, 25), ("bob", 0, 25)]
    assert len(judge.sources) == asked
    assert classroom.grade("ann") == (6, False)
    assert "6 of 20 points" in shown(classroom, "ann")
    page = (classroom.folder / "feedback" / "ann" / ASSIGNMENT / "03_fuse_a_softmax.html").read_text(encoding="utf-8")
    assert "6 of 20 points" in page
    assert "of 10 points" not in page
    assert "grader classroom rescore" not in class_actions.release(classroom.folder, ASSIGNMENT).to_text()
    assert "0 changed" in rescore(classroom.folder, ASSIGNMENT).to_text()


def test_a_weighed_exercise_has_one_scale(classroom: Classroom, judge: ObedientJudge) -> None:
    """A first grading, too, reports on the scale of the gradebook, and stores the judge's own points."""
    change_points(classroom, 20)
    class_actions.release(classroom.folder, ASSIGNMENT, force=True)
    classroom.hand_in("ann", solve(3))
    class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    assert "6 of 20 points" in shown(classroom, "ann")
    assert cell_of(classroom.autograded("ann"), "check-softmax")["metadata"]["grader"]["verdict"]["points"] == 3


def test_dates_extensions_and_policy_take_effect(classroom: Classroom, judge: ObedientJudge) -> None:
    """A due date, a policy and an extension set after grading change the penalty in seconds."""
    classroom.hand_in("ann", solve(8), when="2026-01-02 01:00:00.000000 UTC")
    class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    with classroom.gradebook() as gradebook:
        due = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)
        gradebook.update_or_create_assignment(ASSIGNMENT, duedate=due)
    config = classroom.folder / "nbgrader_config.py"
    config.write_text(config.read_text(encoding="utf-8").replace('"none"\n', '"zero"\n'), encoding="utf-8")
    (ann,) = rescore(classroom.folder, ASSIGNMENT, feedback=False).students
    assert (ann.before, ann.after, ann.penalty) == (8, 0, 8)
    with classroom.gradebook() as gradebook:
        gradebook.grant_extension(ASSIGNMENT, "ann", days=2)
    (ann,) = rescore(classroom.folder, ASSIGNMENT, feedback=False).students
    assert (ann.before, ann.after, ann.penalty) == (0, 8, 0)


@pytest.mark.parametrize("left", ["killed", "no feedback"])
def test_pages_that_were_left_behind_are_written_later(
    left: str, classroom: Classroom, judge: ObedientJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gradebook changes before the pages; the next run writes those that a killed run, or one without, left."""
    classroom.hand_in("ann", solve(3))
    class_actions.autograde(classroom.folder, ASSIGNMENT)
    change_points(classroom, 20)
    class_actions.release(classroom.folder, ASSIGNMENT, force=True)
    page = classroom.folder / "feedback" / "ann" / ASSIGNMENT / "03_fuse_a_softmax.html"
    with monkeypatch.context() as patch:
        if left == "killed":
            patch.setattr("grader.classroom.rescoring.write_all", interrupted)
            with pytest.raises(KeyboardInterrupt):
                rescore(classroom.folder, ASSIGNMENT)
        else:
            rescore(classroom.folder, ASSIGNMENT, feedback=False)
    assert "6 of 20 points" not in page.read_text(encoding="utf-8")
    (ann,) = rescore(classroom.folder, ASSIGNMENT).students
    assert ann.before == ann.after == 6
    assert "6 of 20 points" in page.read_text(encoding="utf-8")
    written = page.stat().st_mtime_ns
    rescore(classroom.folder, ASSIGNMENT)
    assert page.stat().st_mtime_ns == written


def interrupted(*_: Any, **__: Any) -> str:
    raise KeyboardInterrupt


def test_points_given_by_hand_are_kept(classroom: Classroom, judge: ObedientJudge) -> None:
    """The automatic score changes below them, and the work is flagged for a person."""
    classroom.hand_in("ann", solve(3))
    class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    with classroom.gradebook() as gradebook:
        gradebook.find_grade("check-softmax", "03_fuse_a_softmax", ASSIGNMENT, "ann").manual_score = 9.0
        gradebook.db.commit()
    change_points(classroom, 20)
    class_actions.release(classroom.folder, ASSIGNMENT, force=True)
    (ann,) = rescore(classroom.folder, ASSIGNMENT, feedback=False).students
    assert ann.after == 9
    assert classroom.grade("ann") == (6, True)


def test_points_without_a_readable_verdict_are_named(classroom: Classroom, judge: ObedientJudge) -> None:
    """After an upgrade the verdict may be unreadable: points stay on the old scale, and the release still says so."""
    classroom.hand_in("ann", solve(3))
    class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    notebook = classroom.autograded("ann")
    for cell in notebook["cells"]:
        cell["metadata"].get("grader", {})["verdict"] = {"format": "another"}
    path = classroom.folder / "autograded" / "ann" / ASSIGNMENT / "03_fuse_a_softmax.ipynb"
    path.write_text(json.dumps(notebook), encoding="utf-8")
    change_points(classroom, 20)
    class_actions.release(classroom.folder, ASSIGNMENT, force=True)
    result = rescore(classroom.folder, ASSIGNMENT, feedback=False)
    assert (result.ok, result.students[0].after) == (False, 3)
    assert "softmax judged by another version of the grader: autograde again with --force" in result.to_text()
    assert "grader classroom rescore" in class_actions.release(classroom.folder, ASSIGNMENT).to_text()


def test_work_without_a_verdict_is_left_alone(classroom: Classroom, judge: ObedientJudge) -> None:
    """A cell that the judge could not grade waits for autograde, and newer work waits for autograde."""
    classroom.hand_in("ann", solve(3))
    judge.errors = [ZeroDivisionError(), ZeroDivisionError()]
    class_actions.autograde(classroom.folder, ASSIGNMENT, feedback=False)
    classroom.hand_in("bob", solve(4))
    result: Any = rescore(classroom.folder, ASSIGNMENT, feedback=False)
    assert [student.student for student in result.students] == ["ann"]
    assert classroom.grade("ann", "check-vector_add", "01_add_vectors") == (None, True)
    with pytest.raises(ClassroomError, match="no assignment"):
        rescore(classroom.folder, "03_tritn")
