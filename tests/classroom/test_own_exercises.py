"""A class with an exercise of its own: created, released, fetched, submitted and graded."""

import shutil

import pytest

from grader.authoring.new_exercise import exercise_cells, new_exercise
from grader.classroom import class_actions
from grader.errors import ClassroomError
from grader.exercises import find, found
from grader.submission import submissions_in

from .conftest import ASSIGNMENT, cell_of


@pytest.fixture
def course(new_course, monkeypatch):
    """A course with the exercise `add_up`, a copy of `vector_add`, released."""
    monkeypatch.setattr(found, "_used", None)
    made = new_course()
    monkeypatch.chdir(made.folder)
    new_exercise("add_up", "vector_add")
    class_actions.release(made.folder, ASSIGNMENT, force=True)
    return made


def solve(notebook):
    """Replace the stub, as a learner would who knows the answer."""
    cell_of(notebook, "add_up")["source"] = exercise_cells(find("add_up")).reference


def test_an_exercise_of_the_course_is_graded_from_end_to_end(course, tmp_path, monkeypatch):
    """The real judge grades in the simulator from any folder: right work gets its points, the stub none."""
    course.hand_in("ada", solve, "add_up")
    course.hand_in("bob", lambda notebook: None, "add_up")
    monkeypatch.chdir(tmp_path)
    result = class_actions.autograde(course.folder, ASSIGNMENT, feedback=False)
    assert [each.reason for each in result.students] == ["", ""]
    assert course.grade("ada", "check-add_up", "add_up") == (find("add_up").correctness_points, False)
    assert course.grade("bob", "check-add_up", "add_up") == (0.0, False)


def test_learners_get_the_stub_and_the_module(course, tmp_path, monkeypatch):
    """A fetched assignment can be checked in the learner's folder, and has no solution in it."""
    released = course.folder / "release" / ASSIGNMENT
    assert "### BEGIN SOLUTION" not in (released / "add_up.ipynb").read_text(encoding="utf-8")
    (tmp_path / "work/.grader").mkdir(parents=True)
    shutil.copytree(released, tmp_path / "work" / ASSIGNMENT)
    monkeypatch.chdir(tmp_path / "work" / ASSIGNMENT)
    found.use(None)
    assert [each.exercise_id for each in submissions_in("add_up.ipynb")] == ["add_up"]
    assert found.folder() == tmp_path / "work" / ASSIGNMENT / "exercises"


def test_an_unchanged_release_stays_and_a_changed_exercise_is_another_version(course):
    """The modules are part of the comparison."""
    assert class_actions.release(course.folder, ASSIGNMENT).outcome == "unchanged"
    module = course.folder / "exercises/add_up.py"
    module.write_text(module.read_text(encoding="utf-8") + "\n# a word\n", encoding="utf-8")
    with pytest.raises(ClassroomError, match=r"differs in exercises/add_up\.py"):
        class_actions.release(course.folder, ASSIGNMENT)


def test_a_module_that_fails_leaves_the_work_ungraded_and_says_why(course, judge):
    """No points are lost: the work is flagged for manual grading, and the next run grades it."""
    course.hand_in("ada", solve, "add_up")
    (course.folder / "exercises/broken.py").write_text("x = y\n", encoding="utf-8")
    result = class_actions.autograde(course.folder, ASSIGNMENT, feedback=False)
    assert "broken.py, line 1: NameError" in result.students[0].reason
    assert course.grade("ada", "check-add_up", "add_up") == (None, True)
