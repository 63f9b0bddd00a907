"""Tests of grader.classroom.new_course: a course folder that works at once and keeps its files."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from traitlets.utils.importstring import import_item

from grader.classroom import class_actions, new_course, settings
from grader.errors import ClassroomError
from tests.classroom.conftest import Classroom


def test_init_makes_a_course(classroom: Classroom) -> None:
    """Settings, sources, gradebook and exchange exist, with suitable permissions."""
    exchange = classroom.folder.with_name("course-exchange")
    assert (classroom.folder / "nbgrader_config.py").is_file()
    assert (classroom.folder / "source" / "03_triton" / "03_fuse_a_softmax.ipynb").is_file()
    assert (classroom.folder / "gradebook.db").is_file()
    assert stat.S_IMODE(classroom.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(exchange.stat().st_mode) == 0o1777


def test_init_keeps_what_is_there(classroom: Classroom) -> None:
    """A second call adds missing files and changes nothing else."""
    config = classroom.folder / "nbgrader_config.py"
    source = classroom.folder / "source" / "03_triton"
    config.write_text(config.read_text(encoding="utf-8") + "# mine\n", encoding="utf-8")
    (source / "01_add_vectors.ipynb").write_text("mine", encoding="utf-8")
    (source / "03_fuse_a_softmax.ipynb").unlink()
    result = class_actions.init(classroom.folder, course_id="other")
    assert result.created == ("source/03_triton/03_fuse_a_softmax.ipynb",)
    assert "# mine" in config.read_text(encoding="utf-8")
    assert (source / "01_add_vectors.ipynb").read_text(encoding="utf-8") == "mine"
    assert result.course_id == "gpu-course"
    assert any("keeps its id in nbgrader_config.py, gpu-course" in warning for warning in result.warnings)


def test_upgrade_replaces_what_nobody_edited(classroom: Classroom) -> None:
    """A notebook that was only run follows the new version; an edited one stays and is named; so does the config."""
    source = classroom.folder / "source" / "03_triton"
    config = classroom.folder / "nbgrader_config.py"
    before = config.read_text(encoding="utf-8")
    paths = [source / "01_add_vectors.ipynb", source / "03_fuse_a_softmax.ipynb"]
    ours = [path.read_text(encoding="utf-8") for path in paths]
    old = [json.loads(text) for text in ours]
    for notebook in old:
        notebook["cells"][0]["source"] = "an older version"
    pretend_made(classroom.folder, paths, [json.dumps(notebook) for notebook in old])
    old[0]["cells"][0]["execution_count"] = 7  # it was run
    old[1]["cells"][0]["source"] = "mine"
    for path, notebook in zip(paths, old, strict=True):
        path.write_text(json.dumps(notebook), encoding="utf-8")
    assert class_actions.init(classroom.folder).updated == ()
    result = class_actions.init(classroom.folder, upgrade=True)
    assert result.updated == ("source/03_triton/01_add_vectors.ipynb",)
    assert result.edited == ("source/03_triton/03_fuse_a_softmax.ipynb",)
    assert "Edited, so not brought up to date: source/03_triton/03_fuse_a_softmax.ipynb" in result.to_text()
    assert paths[0].read_text(encoding="utf-8") == ours[0]
    assert json.loads(paths[1].read_text(encoding="utf-8"))["cells"][0]["source"] == "mine"
    assert config.read_text(encoding="utf-8") == before
    assert class_actions.init(classroom.folder, upgrade=True).updated == ()


def test_upgrade_keeps_modes_and_remembers_what_is_the_same(classroom: Classroom) -> None:
    """A group may share the course; a course without a record gets one of the files that are as this version's."""
    path = classroom.folder / "source" / "03_triton" / "01_add_vectors.ipynb"
    record = classroom.folder / new_course.RECORD
    ours, before = path.read_text(encoding="utf-8"), json.loads(record.read_text(encoding="utf-8"))
    name = path.relative_to(classroom.folder).as_posix()
    record.unlink()
    class_actions.init(classroom.folder)
    assert json.loads(record.read_text(encoding="utf-8"))[name] == before[name]
    old = json.loads(ours)
    old["cells"][0]["source"] = "an older version"
    pretend_made(classroom.folder, [path], [json.dumps(old)])
    path.chmod(0o664)
    assert class_actions.init(classroom.folder, upgrade=True).updated == (name,)
    assert (stat.S_IMODE(path.stat().st_mode), path.read_text(encoding="utf-8")) == (0o664, ours)


def pretend_made(course: Path, paths: list[Path], texts: list[str]) -> None:
    """Record these texts as those that `init` wrote."""
    record = json.loads((course / new_course.RECORD).read_text(encoding="utf-8"))
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text, encoding="utf-8")
        record[path.relative_to(course).as_posix()] = new_course.contents(path)
    (course / new_course.RECORD).write_text(json.dumps(record), encoding="utf-8")


def test_a_folder_that_was_there_is_closed(tmp_path: Path, classroom: Classroom) -> None:
    """Solutions and grades come into it; an instructor who opens it afterwards only gets a warning."""
    folder = tmp_path / "mine"
    folder.mkdir(mode=0o755)
    assert any(f"{folder} is now closed to other users" in warning for warning in class_actions.init(folder).warnings)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not any("solutions" in warning for warning in class_actions.init(folder).warnings)
    folder.chmod(0o750)
    assert any(f"`chmod 700 {folder}`" in warning for warning in class_actions.init(folder).warnings)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o750


@pytest.mark.parametrize("mode", [0o1777, 0o755])
def test_an_exchange_is_no_place_for_a_course(classroom: Classroom, mode: int) -> None:
    """Learners can reach it, so neither `init` nor other commands' advice puts solutions there."""
    exchange = classroom.folder.with_name("course-exchange")
    exchange.chmod(mode)
    with pytest.raises(ClassroomError, match="is an exchange, open to all learners"):
        class_actions.init(exchange)
    with pytest.raises(ClassroomError, match="is an exchange; name the course folder") as caught:
        class_actions.status(exchange)
    assert "init" not in str(caught.value)
    assert [path.name for path in exchange.iterdir()] == ["gpu-course"]


def test_home_is_no_course(home: Path) -> None:
    """It would be closed to other users, and all its files would look like the course's."""
    with pytest.raises(ClassroomError, match="is your home"):
        class_actions.init(home)


def test_closed_parent_of_the_exchange_is_noted(classroom: Classroom, tmp_path: Path) -> None:
    """An exchange that other users cannot reach gives a warning."""
    tmp_path.chmod(0o700)
    assert any("closed to other users" in warning for warning in class_actions.init(classroom.folder).warnings)


@pytest.mark.parametrize(
    ("dest", "options", "words"),
    [
        ("course", {"course_id": "a+b"}, "cannot be a course id"),
        ("course", {"course_id": ""}, "cannot be a course id"),
        ("course", {"course_id": "../x"}, "cannot be a course id"),
        ("co[ur]se", {}, "reads `\\[`"),
        ("file", {}, "is a file"),
        ("course", {"exchange": "file"}, "is a file"),
        ("course", {"exchange": "course/exchange"}, "neither can be inside the other"),
        ("course", {"exchange": "."}, "neither can be inside the other"),
        ("file/course", {}, "cannot be written"),
    ],
)
def test_impossible_places_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dest: str, options: dict[str, str], words: str
) -> None:
    """Names and paths that nbgrader cannot work with give one sentence, and nothing is created."""
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    with pytest.raises(ClassroomError, match=words):
        class_actions.init(Path(dest), **options)  # type: ignore[arg-type]
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "home") == ["file"]


def test_every_named_preprocessor_exists(classroom: Classroom) -> None:
    """The dotted names in the settings can be imported, and generating uses the authors' own list."""
    from grader.authoring import notebooks

    config = settings.load(classroom.folder)
    named = {
        name: [import_item(path) for path in paths]
        for name, paths in (
            ("generate", config.GenerateAssignment.preprocessors),
            ("sanitize", config.Autograde.sanitize_preprocessors),
            ("autograde", config.Autograde.autograde_preprocessors),
            ("feedback", config.GenerateFeedback.preprocessors),
        )
    }
    assert named["generate"] == notebooks.GENERATE
    assert not any("Execute" in step.__name__ for steps in named.values() for step in steps)


def test_moved_course_folder_still_works(classroom: Classroom) -> None:
    """The settings find the course after it was moved."""
    moved = classroom.folder.rename(classroom.folder.with_name("moved"))
    assert class_actions.status(moved).course == str(moved)


def test_course_without_an_active_environment(tmp_path: Path) -> None:
    """`.venv/bin/python -m grader` works although nbgrader looks for `alembic` on the PATH."""
    script = f"import pathlib, grader.classroom.class_actions as c; c.init(pathlib.Path({str(tmp_path)!r}, 'c'))"
    environment = {**os.environ, "PATH": "/usr/bin:/bin"}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment, cwd=Path(__file__).parents[2])
    assert (tmp_path / "c" / "gradebook.db").is_file()
