"""The learner's folder follows the course and keeps the learner's work."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from grader.errors import MachineLacks
from grader.lab import fill


@pytest.fixture
def course(tmp_path: Path) -> Path:
    folder = tmp_path / "course"
    (folder / "03_triton" / ".ipynb_checkpoints").mkdir(parents=True)
    (folder / "README.ipynb").write_text("syllabus 1")
    (folder / "03_triton" / "softmax.ipynb").write_text("softmax 1")
    (folder / "03_triton" / ".ipynb_checkpoints" / "softmax.ipynb").write_text("no part of the course")
    return folder


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return tmp_path / "work"


def test_a_new_folder_gets_the_course(course: Path, work: Path) -> None:
    """All of the course is copied, except hidden files."""
    report = fill(work, course)
    assert report.added == ("03_triton/softmax.ipynb", "README.ipynb")
    assert (work / "03_triton" / "softmax.ipynb").read_text() == "softmax 1"
    assert not (work / "03_triton" / ".ipynb_checkpoints").exists()
    assert fill(work, course).unchanged == report.added


def test_the_glossary_is_copied_and_named(course: Path, work: Path) -> None:
    """The learner has the glossary in the folder, and `grader lab` says so; another course may have none."""
    assert "explains the terms" not in fill(work, course).to_text()
    (course / "glossary.ipynb").write_text("terms")
    assert "glossary.ipynb explains the terms" in fill(work, course).to_text()
    assert (work / "glossary.ipynb").read_text() == "terms"


def test_unchanged_files_are_updated(course: Path, work: Path) -> None:
    """Each version of the course updates them again."""
    fill(work, course)
    for version in ("syllabus 2", "syllabus 3"):
        (course / "README.ipynb").write_text(version)
        report = fill(work, course)
        assert report.updated == ("README.ipynb",)
        assert (work / "README.ipynb").read_text() == version


def test_work_is_never_overwritten(course: Path, work: Path) -> None:
    """A changed file stays when the course changes, and the report names the newer version."""
    fill(work, course)
    (work / "03_triton" / "softmax.ipynb").write_text("my solution")
    assert fill(work, course).kept == ()
    (course / "03_triton" / "softmax.ipynb").write_text("softmax 2")
    for _ in range(2):
        report = fill(work, course)
        assert report.kept == ("03_triton/softmax.ipynb",)
        assert f"newer version is {course}/03_triton/softmax.ipynb" in report.to_text()
        assert (work / "03_triton" / "softmax.ipynb").read_text() == "my solution"


def test_files_that_existed_before_are_work(course: Path, work: Path) -> None:
    """A file of the same name that this command did not copy belongs to the learner."""
    work.mkdir()
    (work / "README.ipynb").write_text("mine")
    assert fill(work, course).kept == ("README.ipynb",)
    assert (work / "README.ipynb").read_text() == "mine"


def test_a_deleted_file_comes_back(course: Path, work: Path) -> None:
    """Deleting a notebook is how a learner starts it over."""
    fill(work, course)
    (work / "README.ipynb").unlink()
    assert fill(work, course).added == ("README.ipynb",)


def test_what_left_the_course_stays(course: Path, work: Path) -> None:
    """Nothing in the learner's folder is ever deleted."""
    fill(work, course)
    (course / "README.ipynb").unlink()
    fill(work, course)
    assert (work / "README.ipynb").read_text() == "syllabus 1"


@pytest.mark.parametrize("damaged", ["", "{", "[]", '{"README.ipynb": 3}', "\0"])
def test_a_damaged_record_costs_no_work(course: Path, work: Path, damaged: str) -> None:
    """Without a record of the copies, every file that differs counts as the learner's."""
    fill(work, course)
    (work / ".grader" / "copied.json").write_text(damaged)
    (course / "README.ipynb").write_text("syllabus 2")
    assert fill(work, course).kept == ("README.ipynb",)
    assert (work / "README.ipynb").read_text() == "syllabus 1"


def test_an_interrupted_copy_is_finished_later(course: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that were copied before the interruption are recorded, so that they can still be updated."""
    replace, calls = os.replace, []

    def interrupted(source: Path, target: Path) -> None:
        calls.append(target)
        if len(calls) == 2:
            raise KeyboardInterrupt
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fill(work, course)
    assert [path.name for path in work.rglob("*.new")] == []
    (course / "03_triton" / "softmax.ipynb").write_text("softmax 2")
    report = fill(work, course)
    assert (report.updated, report.added) == (("03_triton/softmax.ipynb",), ("README.ipynb",))


def test_a_dangling_link_of_the_learner_is_kept(course: Path, work: Path, tmp_path: Path) -> None:
    """A dangling link with the name of a notebook is left alone, and its target is not made."""
    work.mkdir()
    (work / "README.ipynb").symlink_to(tmp_path / "elsewhere")
    assert fill(work, course).kept == ("README.ipynb",)
    assert not (tmp_path / "elsewhere").exists()


def test_without_a_course_there_is_one_sentence(tmp_path: Path, work: Path) -> None:
    """An empty course/ is not built yet, and the learner's folder is not made."""
    with pytest.raises(MachineLacks, match="grader build"):
        fill(work, tmp_path / "course")
    assert not work.exists()


def test_a_folder_that_cannot_be_written_to_is_named(course: Path, tmp_path: Path) -> None:
    """The error names a file that has the folder's name."""
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(MachineLacks, match=r"file"):
        fill(blocked, course)
