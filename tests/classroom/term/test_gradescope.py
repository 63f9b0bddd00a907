"""Gradescope's results file, and the autograder's zip file, which runs outside of this folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from grader.classroom.term.gradescope import results, write_autograder
from grader.errors import ClassroomError
from tests.classroom.conftest import Classroom, ObedientJudge, solve

CHAPTER = "03_triton"


def test_each_exercise_is_a_test_and_a_missing_notebook_says_so(classroom: Classroom, judge: ObedientJudge) -> None:
    """The score is the sum; the leaderboard has the points, and no speed that nobody measured."""
    notebook = classroom.hand_in("ann", solve(3))
    found = results(notebook.parent, CHAPTER, judge)  # type: ignore[arg-type]
    tests = {test["name"]: test for test in found["tests"]}
    assert tests["Fuse a softmax"]["score"] == 3
    assert tests["Fuse an attention"]["score"] == 0
    assert "06_fuse_an_attention.ipynb was not handed in" in tests["Fuse an attention"]["output"]
    assert found["score"] == sum(test["score"] for test in found["tests"])
    assert found["leaderboard"] == [{"name": "Points", "value": found["score"], "order": "desc"}]


def test_the_zip_file_grades_a_folder(tmp_path: Path) -> None:
    """Its `run_autograder` writes a results file that Gradescope reads; nothing was handed in here."""
    wheel = tmp_path / "gpu_course-1-py3-none-any.whl"
    wheel.write_bytes(b"a wheel")
    (tmp_path / "gates.toml").write_text("[softmax]\npoints = 5\n", encoding="utf-8")
    made = write_autograder(tmp_path, CHAPTER, wheel, tmp_path / "autograder.zip")
    assert "softmax" in made.exercises
    source = tmp_path / "autograder" / "source"
    with zipfile.ZipFile(made.file) as archive:
        archive.extractall(source)
        assert archive.getinfo("run_autograder").external_attr >> 16 == 0o755
    assert (source / "course" / "gates.toml").is_file()
    assert (source / wheel.name).read_bytes() == b"a wheel"
    python = tmp_path / "autograder" / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    (tmp_path / "autograder" / "submission").mkdir()
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "AUTOGRADER": str(tmp_path / "autograder"), "PYTHONPATH": paths}
    subprocess.run(["bash", str(source / "run_autograder")], check=True, env=environment)
    found = json.loads((tmp_path / "autograder" / "results" / "results.json").read_text(encoding="utf-8"))
    assert found["score"] == 0
    assert {test["name"] for test in found["tests"]} >= {"Fuse a softmax"}
    assert next(test["max_score"] for test in found["tests"] if test["name"] == "Fuse a softmax") == 5


def test_a_wrong_chapter_or_wheel_is_refused(tmp_path: Path) -> None:
    """The message says what there is, or where a wheel comes from."""
    with pytest.raises(ClassroomError, match="The chapters are: 01_profiling"):
        write_autograder(tmp_path, "05_own", tmp_path / "a.whl", tmp_path / "out.zip")
    with pytest.raises(ClassroomError, match="make wheel"):
        write_autograder(tmp_path, CHAPTER, tmp_path / "a.whl", tmp_path / "out.zip")
