"""A course folder's own exercises: the search for them, and the ones that are rejected."""

import os
from pathlib import Path

import pytest

from grader.errors import UnknownExercise, UnusableExercise
from grader.exercises import EXERCISES, PACKAGED, find, found
from grader.judge.sandbox import sight
from grader.leaderboard.fingerprint import fingerprint

MODULE = (Path(found.__file__).parents[2] / found.file_of(PACKAGED["vector_add"])).read_text(encoding="utf-8")


def own_module(exercise_id="halve", module_name="HALVE"):
    """The package's `vector_add` under another name."""
    return MODULE.replace('"vector_add"', f'"{exercise_id}"').replace("VECTOR_ADD", module_name)


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course folder with the exercise `halve`; the current folder is inside it."""
    monkeypatch.setattr(found, "_used", None)
    monkeypatch.delenv(found.COURSE_VARIABLE, raising=False)
    folder = tmp_path / "course"
    (folder / "exercises").mkdir(parents=True)
    (folder / "source").mkdir()
    (folder / "nbgrader_config.py").touch()
    (folder / "exercises" / "halve.py").write_text(own_module(), encoding="utf-8")
    monkeypatch.chdir(folder / "source")
    return folder


def test_an_exercise_of_the_course_stands_beside_those_of_the_package(course):
    """It is found, listed last, and known by its file; no bytecode is left next to it."""
    assert find("halve").entry == "halve"
    assert list(EXERCISES) == [*PACKAGED, "halve"]
    assert found.file_of(find("halve")) == str(course / "exercises/halve.py")
    assert os.listdir(course / "exercises") == ["halve.py"]


def test_a_changed_module_is_read_again(course):
    """An author edits and checks without restarting the kernel."""
    first = find("halve")
    (course / "exercises/halve.py").write_text(own_module().replace("Add two", "Halve two"), encoding="utf-8")
    assert find("halve").title == first.title.replace("Add two", "Halve two") != first.title


def test_modules_of_a_course_can_import_each_other(course):
    """A shared exercise is found once, in the module that defines it."""
    (course / "exercises/third.py").write_text(
        "from dataclasses import replace\nfrom .halve import HALVE\n"
        "__all__ = ['THIRD']\nTHIRD = replace(HALVE, id='third', entry='third')\n", encoding="utf-8"
    )  # fmt: skip
    assert list(EXERCISES)[-2:] == ["halve", "third"]


def test_the_board_tells_versions_of_an_exercise_of_the_course_apart(course):
    """Its oracle is part of the fingerprint, like a packaged exercise's."""
    first = fingerprint(find("halve"))
    changed = own_module().replace('inputs["x"] + inputs["y"]', 'inputs["x"] - inputs["y"]')
    assert changed != own_module()
    (course / "exercises/halve.py").write_text(changed, encoding="utf-8")
    assert fingerprint(find("halve")) != first


def test_what_a_student_hands_in_is_not_imported(course, monkeypatch):
    """Inside a student's folder with its own mark, only the course's exercises count."""
    theirs = course / "submitted/alice/03_triton"
    (theirs / "exercises").mkdir(parents=True)
    (theirs / ".grader").mkdir()
    (theirs / "nbgrader_config.py").touch()
    (theirs / "exercises/evil.py").write_text("raise SystemExit('run')", encoding="utf-8")
    monkeypatch.chdir(theirs)
    assert found.folder() == course / "exercises"
    (course / "exercises/halve.py").unlink()
    (course / "exercises").rmdir()
    assert list(EXERCISES) == list(PACKAGED)


def test_a_folder_without_a_mark_is_not_a_course(course):
    """Anyone may have a folder named `exercises`."""
    (course / "nbgrader_config.py").unlink()
    assert list(EXERCISES) == list(PACKAGED)


def test_a_fetched_assignment_brings_its_exercises(course, tmp_path, monkeypatch):
    """A learner's folder has `.grader`, and an assignment in it brings its own modules."""
    fetched = tmp_path / "work" / "03_triton"
    fetched.mkdir(parents=True)
    (tmp_path / "work/.grader").mkdir()
    (course / "exercises").rename(fetched / "exercises")
    monkeypatch.chdir(fetched)
    assert find("halve").id == "halve"


def test_a_folder_of_another_user_is_passed_over_and_named(course, monkeypatch):
    """Its code would run as this user, so the user must declare that they trust it."""
    uid = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    if uid == 0:  # whose files everybody trusts
        os.chown(course / "exercises", 12345, -1)
    with pytest.raises(UnknownExercise, match="belongs to another user") as error:
        find("halve")
    assert f"GRADER_COURSE={course}" in str(error.value)
    monkeypatch.setenv(found.COURSE_VARIABLE, str(course))
    assert find("halve").id == "halve"


def test_a_course_that_is_named_counts_before_the_current_folder(course, tmp_path, monkeypatch):
    """Commands and nbgrader name their course, whatever the current folder is."""
    monkeypatch.chdir(tmp_path)
    assert list(EXERCISES) == list(PACKAGED)
    found.use(course)
    assert find("halve").id == "halve"


@pytest.mark.parametrize("path", ["exercises", "exercises/halve.py"])
def test_what_every_user_can_write_is_refused(course, path):
    """The judge would run their code."""
    (course / path).chmod(0o777)
    with pytest.raises(UnusableExercise, match=rf"{course / path}.*chmod o-w"):
        find("halve")


def test_a_faulty_exercise_is_refused_with_its_file(course):
    """The sentence has the file, the exercise and the value."""
    text = own_module().replace('Gate("torch"', 'Gate("torhc"')
    assert text != own_module()
    (course / "exercises/halve.py").write_text(text, encoding="utf-8")
    with pytest.raises(UnusableExercise, match=r"halve\.py, exercise 'halve': the baseline of a gate is 'torhc'"):
        find("halve")


def test_a_slip_in_an_id_gets_the_nearest_one():
    """Not a list of thirty."""
    with pytest.raises(UnknownExercise, match=r"There is no exercise 'softmx'\. Did you mean 'softmax'\?"):
        find("softmx")


def test_exercises_in_a_folder_that_is_no_course_are_mentioned(tmp_path, monkeypatch):
    """A release that was copied by hand: the message says how to use them."""
    monkeypatch.setattr(found, "_used", None)
    monkeypatch.delenv(found.COURSE_VARIABLE, raising=False)
    (tmp_path / "exercises").mkdir()
    (tmp_path / "exercises/halve.py").write_text(own_module(), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnknownExercise, match=f"is not a course folder: if you trust it, set GRADER_COURSE={tmp_path}"):
        find("halve")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import math\nx = y\n", "broken.py, line 2: NameError: name 'y' is not defined. Fix it"),
        ("def f(:\n", "broken.py, line 1: SyntaxError"),
        ("import no_such_package\n", "broken.py, line 1: ModuleNotFoundError: No module named 'no_such_package'"),
    ],
)
def test_a_module_that_fails_is_named_with_its_line(course, text, said):
    """Every listing reports it, and packaged exercises can still be graded by id."""
    (course / "exercises/broken.py").write_text(text, encoding="utf-8")
    with pytest.raises(UnusableExercise) as error:
        list(EXERCISES)
    assert said in str(error.value)
    assert "move broken.py out of" in str(error.value)
    assert find("softmax").id == "softmax"


def test_an_id_that_the_package_has_is_refused_with_both_files(course):
    """Neither hides the other."""
    (course / "exercises/halve.py").write_text(own_module("softmax"), encoding="utf-8")
    with pytest.raises(UnusableExercise) as error:
        list(EXERCISES)
    assert found.file_of(PACKAGED["softmax"]) in str(error.value)
    assert str(course / "exercises/halve.py") in str(error.value)


def test_two_modules_with_the_same_function_are_refused(course):
    """`check(halve)` would have two meanings."""
    (course / "exercises/other.py").write_text(own_module("other").replace('entry="other"', 'entry="halve"'))
    with pytest.raises(UnusableExercise, match=r"function 'halve'.*halve\.py.*other\.py"):
        list(EXERCISES)


def test_a_worker_is_not_shown_the_exercises_of_the_course(course, monkeypatch):
    """The oracle is hidden even in a folder that PYTHONPATH makes visible to the sandbox."""
    monkeypatch.setenv("PYTHONPATH", str(course))
    monkeypatch.setenv("HOME", "/nonexistent")
    assert course in sight.shown(None)
    assert course / "exercises" in sight.hidden_in(sight.shown(None))
