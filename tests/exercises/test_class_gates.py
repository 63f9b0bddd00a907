"""A class's `gates.toml`: what it changes, what it leaves alone, and the mistakes that it names."""

import os
from dataclasses import fields
from pathlib import Path

import pytest
from typer.testing import CliRunner

from grader.classroom.grading.verdict_store import exercise_version
from grader.cli import app
from grader.errors import UnusableExercise
from grader.exercise import Gate
from grader.exercises import EXERCISES, PACKAGED, class_gates, find, found
from grader.feedback.summary import environment_line
from grader.judge.arbiter import Arbiter

SOFTMAX = PACKAGED["softmax"]
WHOLE = """
[softmax]
points = 5
wall_limit_s = 180.5

[[softmax.gates]]
baseline = "torch"
at_least = 1.05
points = 2
or_share = 0.85
cases = ["4096 × 4096"]

[[softmax.gates]]
baseline = "eager"
at_least = 3
points = 1
"""


@pytest.fixture
def course(tmp_path, monkeypatch):
    """An empty course folder, which is the current one."""
    monkeypatch.setattr(found, "_used", None)
    monkeypatch.delenv(found.COURSE_VARIABLE, raising=False)
    (tmp_path / "nbgrader_config.py").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(course: Path, text: str) -> None:
    (course / "gates.toml").write_text(text, encoding="utf-8")


def test_points_gates_and_limits_change_and_nothing_else(course):
    """All other exercises are the package's own."""
    write(course, WHOLE)
    softmax = find("softmax")
    timed = tuple(case.name for case in SOFTMAX.timed_cases)
    assert softmax.gates == (Gate("torch", 1.05, 2, ("4096 × 4096",), 0.85), Gate("eager", 3, 1, timed))
    assert (softmax.correctness_points, softmax.max_points, softmax.wall_limit_s) == (5, 8, 180.5)
    changed = {each.name for each in fields(SOFTMAX) if getattr(softmax, each.name) != getattr(SOFTMAX, each.name)}
    assert changed == {"gates", "correctness_points", "wall_limit_s", "changed_by"}
    assert EXERCISES["softmax"] == softmax
    assert find("matmul") is PACKAGED["matmul"]


def test_a_part_that_is_not_named_stays(course):
    """Points alone leave the gates; an empty list removes them."""
    write(course, "[softmax]\npoints = 2\n")
    assert find("softmax").gates == SOFTMAX.gates
    write(course, "[softmax]\ngates = []\n")
    assert (find("softmax").gates, find("softmax").correctness_points) == ((), SOFTMAX.correctness_points)
    (course / "gates.toml").unlink()
    assert find("softmax") is SOFTMAX


def test_what_the_command_prints_can_be_read_again(course):
    """It changes nothing, for every exercise; the course's own file counts."""
    write(course, "\n\n".join(map(class_gates.as_toml, PACKAGED.values())))
    for name, exercise in PACKAGED.items():
        assert (find(name).gates, find(name).max_points) == (exercise.gates, exercise.max_points)
        assert find(name).wall_limit_s == exercise.wall_limit_s
    write(course, WHOLE)
    printed = CliRunner().invoke(app, ["classroom", "gates", "softmax", "--course", str(course)]).stdout
    assert "at_least = 1.05" in printed
    write(course, printed)
    assert find("softmax").gates[0].or_share == 0.85


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[softmax\npoints = 3", "line 1"),
        ("[sofmax]\npoints = 3", "there is no exercise 'sofmax'. Did you mean 'softmax'?"),
        ("[softmax]\npoint = 3", "[softmax]: there is no key 'point'. Did you mean 'points'?"),
        ("[softmax]\npoints = '3'", "[softmax], points: it must be a number"),
        ("[softmax]\npoints = -1", "[softmax], points: it must be a number, and not negative"),
        ("[softmax]\npoints = true", "[softmax], points: it must be a number"),
        ("[softmax]\npoints = nan", "[softmax], points: it must be a number"),
        ("[softmax]\npoints = 1000001", "[softmax], points: it must be at most 1,000,000"),
        ("[softmax]\npoints = 1" + 400 * "0", "[softmax], points: it must be at most 1,000,000"),
        ("[softmax]\nwall_limit_s = 1e300", "[softmax], wall_limit_s: it must be at most 1,000,000"),
        ("[softmax]\nwall_limit_s = 0", "[softmax], wall_limit_s: it must be above 0"),
        ("[softmax]\npoints = 0\ngates = []", "[softmax]: no points are left"),
        ("[softmax.gates]\nbaseline = 'torch'", "write each gate as `[[softmax.gates]]`"),
        ("[[softmax.gates]]\nbaseline = 'torch'\npoints = 1", "[[softmax.gates]] number 1: `at_least` is missing"),
        ("[[softmax.gates]]\nbaseline = 'torsh'\nat_least = 1\npoints = 1", "Did you mean 'torch'?"),
        ("[[softmax.gates]]\nbaseline = 'torch'\nat_least = 0\npoints = 1", "at_least: it must be above 0"),
        (
            "[[softmax.gates]]\nbaseline = 'torch'\nat_least = 1\npoints = 1\ncases = ['4096 x 4096']",
            "there is no timed case '4096 x 4096'. Did you mean '4096 × 4096'?",
        ),
        ("[[time_gpu.gates]]\nbaseline = 'a'\nat_least = 1\npoints = 1", "this exercise is not timed"),
        ("softmax = 3", "[softmax]: it must be a table"),
    ],
)
def test_a_mistake_is_named_and_nothing_is_graded(course, text, said):
    """The message has the file, the place in it, and what would be right; a name is enough to find it."""
    write(course, text)
    with pytest.raises(UnusableExercise) as error:
        find("vector_add")
    assert said in str(error.value)
    assert str(course / "gates.toml") in str(error.value)


def test_a_file_that_others_can_write_is_refused(course):
    """It decides about points."""
    write(course, WHOLE)
    os.chmod(course / "gates.toml", 0o666)
    with pytest.raises(UnusableExercise, match="chmod o-w"):
        find("softmax")


def test_a_students_file_does_not_count(course, monkeypatch):
    """The outermost course folder counts, wherever the command runs."""
    theirs = course / "submitted/alice/03_triton"
    theirs.mkdir(parents=True)
    (theirs / "nbgrader_config.py").touch()
    write(theirs, "[softmax]\npoints = 100\n")
    monkeypatch.chdir(theirs)
    assert find("softmax") is SOFTMAX


def test_stored_verdicts_are_those_of_the_same_gates(course):
    """The key of the store has the exercise's version in it."""
    before = exercise_version("softmax")
    write(course, WHOLE)
    changed = exercise_version("softmax")
    write(course, WHOLE.replace("1.05", "1.06"))
    assert len({before, changed, exercise_version("softmax")}) == 3


def test_a_report_says_that_the_class_has_its_own(course):
    """A learner who compares points with the notebook's text finds the reason."""
    write(course, "[vector_add]\npoints = 4\n")
    arbiter = Arbiter("simulator")
    try:
        verdict = arbiter.grade("def vector_add(x, y, out): out.copy_(x + y)", find("vector_add"))
    finally:
        arbiter.close()
    assert verdict.points == 4
    assert "points, gates and limits: the class's gates.toml" in environment_line(verdict)
