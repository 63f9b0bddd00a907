"""`grader exercise new` writes an exercise that works before it is changed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from grader.authoring.new_exercise import can_be_copied, exercise_cells, new_exercise
from grader.cli import app
from grader.errors import GraderError
from grader.exercises import PACKAGED, find, found
from grader.submission.solution_cell import Cell

COPIED = [name for name, exercise in PACKAGED.items() if can_be_copied(exercise)]


@pytest.fixture
def course(tmp_path, monkeypatch):
    """An empty course folder, which is the current one."""
    monkeypatch.setattr(found, "_used", None)
    monkeypatch.delenv(found.COURSE_VARIABLE, raising=False)
    folder = tmp_path / "course"
    folder.mkdir()
    (folder / "nbgrader_config.py").touch()
    monkeypatch.chdir(folder)
    return folder


def test_the_exercises_that_write_their_outputs_can_be_copied():
    """Triton and CUDA C++ are among them."""
    assert {"vector_add", "softmax", "square_matrix", "grayscale", "transpose", "mean_cuda"} <= set(COPIED)


@pytest.mark.parametrize("like", COPIED)
def test_a_copy_is_its_model_under_another_name(course, like):
    """Module, solution and stub are right without a change, and the old name is not defined."""
    new_exercise("layer_norm", like, title='A "new" one', chapter="05_ours")
    made, model = find("layer_norm"), PACKAGED[like]
    assert (made.title, made.chapter, made.notebook, made.entry) == (
        'A "new" one',
        "05_ours",
        "layer_norm",
        "layer_norm",
    )
    assert [case.name for case in made.cases] == [case.name for case in model.cases]
    assert (made.budget, made.max_points) == (model.budget, model.max_points)
    cells = exercise_cells(made)
    assert cells.points == made.max_points
    solved = Cell("the reference", cells.reference)
    assert solved.defines("layer_norm")
    assert not solved.defines(model.entry)
    assert not solved.is_stub
    assert Cell("the stub", cells.stub).is_stub


def test_the_written_test_passes_with_plain_pytest_and_fails_for_a_wrong_reference(course):
    """The test runs in the course folder without a GPU, and fails if an author breaks the reference."""
    new_exercise("add_up", "vector_add")
    ran = _pytest(course)
    assert "4 passed" in ran.stdout, ran.stdout + ran.stderr
    notebook = course / "source/03_triton/add_up.ipynb"
    text = notebook.read_text(encoding="utf-8")
    assert "x + y" in text
    notebook.write_text(text.replace("x + y", "x - y"), encoding="utf-8")
    ran = _pytest(course, "-k", "reference")
    assert "1 failed" in ran.stdout, ran.stdout + ran.stderr


def _pytest(course, *more):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_add_up.py", *more]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(command, cwd=course, env=environment, capture_output=True, text=True, check=False)


def test_the_notebook_has_the_cells_that_nbgrader_needs(course):
    """A solution cell, and a locked check cell with the points."""
    new_exercise("layer_norm", "softmax")
    notebook = json.loads((course / "source/03_triton/layer_norm.ipynb").read_text(encoding="utf-8"))
    data = {cell["id"]: cell["metadata"].get("nbgrader") for cell in notebook["cells"]}
    flags = {"task": False, "schema_version": 3}
    solution = {"grade_id": "layer_norm", "solution": True, "grade": False, "locked": False} | flags
    check = {"grade_id": "check-layer_norm", "solution": False, "grade": True, "locked": True, "points": 10} | flags
    assert data["layer_norm"].items() >= solution.items()
    assert data["check-layer_norm"].items() >= check.items()


def test_a_copy_can_be_copied(course):
    """Its reference is read from the course folder."""
    new_exercise("layer_norm", "softmax")
    new_exercise("rms_norm", "layer_norm")
    assert "def rms_norm(x, out)" in exercise_cells(find("rms_norm")).reference


@pytest.mark.parametrize(
    ("exercise_id", "like", "said"),
    [
        ("Layer-Norm", "softmax", "cannot be an id"),
        ("class", "softmax", "cannot be an id"),
        ("matmul", "softmax", "is taken by the exercise in"),
        ("triton", "softmax", "uses for something else"),
        ("layer_norm", "ls_numba_typed", "Copy one of: .*softmax"),
        ("layer_norm", "time_gpu", "cannot be copied"),
        ("layer_norm", "no_such", "There is no exercise 'no_such'"),
    ],
)
def test_an_impossible_copy_is_refused_and_nothing_is_written(course, exercise_id, like, said):
    """The sentence says what to do."""
    with pytest.raises(GraderError, match=said):
        new_exercise(exercise_id, like)
    assert sorted(path.name for path in course.iterdir()) == ["nbgrader_config.py"]


def test_a_file_that_exists_is_never_replaced(course):
    """An author's notebook stays."""
    notebook = course / "source/03_triton/layer_norm.ipynb"
    notebook.parent.mkdir(parents=True)
    notebook.write_text("mine", encoding="utf-8")
    with pytest.raises(GraderError, match="exists already"):
        new_exercise("layer_norm", "softmax")
    assert notebook.read_text(encoding="utf-8") == "mine"
    assert not (course / "exercises").exists()


def test_outside_a_course_folder_the_command_says_how_to_make_one(course, tmp_path, monkeypatch):
    """The exit status is 2, and the error is one sentence."""
    monkeypatch.chdir(tmp_path)
    said = CliRunner().invoke(app, ["exercise", "new", "layer_norm", "--like", "softmax"])
    assert said.exit_code == 2
    assert f"{tmp_path} is not a course folder" in said.stderr
    assert "grader classroom init" in said.stderr


def test_the_command_says_what_it_wrote_and_what_comes_next(course):
    """Every path that it names exists."""
    said = CliRunner().invoke(app, ["exercise", "new", "layer_norm", "--like", "softmax", "--course", str(course)])
    assert said.exit_code == 0, said.output
    paths = [line.split()[0] for line in said.stdout.splitlines()[1:4]]
    assert [Path(path).name for path in paths] == ["layer_norm.py", "layer_norm.ipynb", "test_layer_norm.py"]
    assert all((course / path).is_file() for path in paths)
    assert "grader exercise budget layer_norm" in said.stdout
