"""Tests of grader.classroom.settings: JupyterLab's settings, so that nbgrader's extensions find course and exchange."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from grader.classroom import settings
from grader.errors import ClassroomError
from tests.classroom.conftest import Classroom


def config_folder(setup: settings.LabSetup) -> Path:
    return Path(setup.env["JUPYTER_CONFIG_PATH"].split(os.pathsep)[0])


@pytest.mark.parametrize("given", ["course", "course-exchange"])
def test_learner_finds_the_exchange(classroom: Classroom, tmp_path: Path, given: str) -> None:
    """From the exchange, or the course folder, the learner's nbgrader gets course id and exchange."""
    from traitlets.config.loader import PyFileConfigLoader

    setup = settings.learner(tmp_path / given, tmp_path / "work")
    assert setup.root_dir == tmp_path / "work"
    config = PyFileConfigLoader("nbgrader_config.py", path=str(config_folder(setup))).load_config()
    assert config.CourseDirectory.course_id == "gpu-course"
    assert config.Exchange.root == str(tmp_path / "course-exchange")


def test_learner_sees_no_instructors_tools(classroom: Classroom, tmp_path: Path) -> None:
    """Formgrader is off, in the page and in the server; the Assignment List is on."""
    folder = config_folder(settings.learner(classroom.folder, tmp_path / "work"))
    page = json.loads((folder / "labconfig" / "page_config.json").read_text(encoding="utf-8"))
    server = json.loads((folder / "jupyter_server_config.json").read_text(encoding="utf-8"))
    extensions = server["ServerApp"]["jpserver_extensions"]
    assert page["disabledExtensions"]["@jupyter/nbgrader:formgrader"] is True
    assert "@jupyter/nbgrader:assignment-list" not in page["disabledExtensions"]
    assert extensions["nbgrader.server_extensions.formgrader"] is False
    assert extensions["nbgrader.server_extensions.assignment_list"] is True


def test_learners_folder_is_named_after_the_course(
    classroom: Classroom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a folder of their own, learners work in one named after the course, and its files are kept."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gpu-course" / "03_triton").mkdir(parents=True)
    (tmp_path / "gpu-course" / "03_triton" / "mine.ipynb").write_text("mine", encoding="utf-8")
    setup = settings.learner(classroom.folder)
    assert setup.root_dir == tmp_path / "gpu-course"
    assert (setup.root_dir / "03_triton" / "mine.ipynb").read_text(encoding="utf-8") == "mine"


def test_other_config_paths_stay(classroom: Classroom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's own JUPYTER_CONFIG_PATH follows ours."""
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "/theirs")
    assert (
        settings.learner(classroom.folder, tmp_path / "work")
        .env["JUPYTER_CONFIG_PATH"]
        .endswith(os.pathsep + "/theirs")
    )


def test_exchange_with_several_courses(classroom: Classroom, tmp_path: Path) -> None:
    """With two courses in one exchange the message asks which; a wrong answer gives the list."""
    exchange = tmp_path / "course-exchange"
    (exchange / "other" / "outbound").mkdir(parents=True)
    with pytest.raises(ClassroomError, match=r"gpu-course, other.*--course-id"):
        settings.learner(exchange, tmp_path / "work")
    with pytest.raises(ClassroomError, match="no course 'third'"):
        settings.learner(exchange, tmp_path / "work", course_id="third")
    assert settings.learner(exchange, tmp_path / "work", course_id="other").root_dir == tmp_path / "work"


def test_folder_that_is_neither(tmp_path: Path) -> None:
    """A folder without a course gives one sentence, for learners and instructors."""
    with pytest.raises(ClassroomError, match="neither an exchange"):
        settings.learner(tmp_path, tmp_path / "work")
    with pytest.raises(ClassroomError, match="not a course folder"):
        settings.instructor(tmp_path)


def test_instructor_works_in_the_course_folder(classroom: Classroom) -> None:
    """Formgrader needs the course inside the server's root."""
    setup = settings.instructor(classroom.folder)
    assert setup.root_dir == classroom.folder
    assert "JUPYTER_CONFIG_PATH" not in setup.env


def test_lab_without_a_classroom_hides_nbgrader(tmp_path: Path) -> None:
    """Useless menus are hidden."""
    env = settings.hide_nbgrader(tmp_path / "state")
    page = json.loads((tmp_path / "state" / "labconfig" / "page_config.json").read_text(encoding="utf-8"))
    assert "@jupyter/nbgrader:menu" in page["disabledExtensions"]
    assert env["JUPYTER_CONFIG_PATH"] == str(tmp_path / "state")
