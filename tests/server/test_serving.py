"""Tests of grader.server.serving: where it may listen, that one server serves a course, and its tokens."""

from __future__ import annotations

import csv
import stat
import sys
import threading
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from typer.testing import CliRunner

from grader.cli import app
from grader.errors import ClassroomError, GraderError, MachineLacks
from grader.server import serving
from grader.server.job_queue import Limits
from grader.server.judge_loop import Settings
from grader.server.tokens import course_tokens
from tests.server.conftest import bare_course


@pytest.fixture
def course(quick_gradebooks: None, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course folder without notebooks."""
    monkeypatch.setattr(serving, "exercise_versions", dict)  # they take a second
    return bare_course(tmp_path)


def opened(course: Path, *, sandbox: bool = False) -> AbstractContextManager[Any]:
    return serving.opened(Settings(course, sandbox), serving.Address(port=0), Limits())


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.7", "gpu.example.org"])
def test_tokens_never_travel_in_clear_text(host: str, tmp_path: Path) -> None:
    """A certificate that is missing does not count."""
    with pytest.raises(ClassroomError, match="could read the learners' tokens"):
        serving.Address(host).check()
    with pytest.raises(ClassroomError, match="There is no file"):
        serving.Address(host, certificate=tmp_path / "cert.pem").check()
    (tmp_path / "cert.pem").touch()
    serving.Address(host, certificate=tmp_path / "cert.pem").check()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_this_machine_needs_no_certificate(host: str) -> None:
    """A web server in front has one."""
    serving.Address(host).check()


def test_one_server_serves_a_course(course: Path) -> None:
    """A second one would judge the same jobs. Its files are closed to others."""
    with opened(course):
        with pytest.raises(ClassroomError, match="Another server serves"), opened(course):
            pass
        assert stat.S_IMODE((course / serving.FOLDER).stat().st_mode) == 0o700
    with opened(course):
        pass


def test_a_broken_store_of_the_leaderboard_is_named(course: Path) -> None:
    """Before anybody can submit; otherwise the pages are there at once."""
    with opened(course):
        assert (course / serving.FOLDER / "site" / "index.html").is_file()
    (course / "leaderboard.sqlite").write_text("something else", encoding="utf-8")
    with pytest.raises(GraderError, match="not a leaderboard store"), opened(course):
        pass


def test_a_folder_that_is_no_course_is_refused(tmp_path: Path) -> None:
    """Nothing is written into it."""
    folder = tmp_path / "empty"
    folder.mkdir()
    with pytest.raises(ClassroomError, match="is not a course folder"), opened(folder):
        pass
    assert list(folder.iterdir()) == []


def test_without_a_sandbox_nobody_is_served(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless the instructor says so."""

    def refuse() -> None:
        raise MachineLacks("There is no sandbox.")

    monkeypatch.setattr("grader.judge.sandbox.must_be_caged", refuse)
    with pytest.raises(MachineLacks), opened(course, sandbox=True):
        pass


def test_the_packages_that_it_needs_are_named(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are an extra."""
    monkeypatch.setitem(sys.modules, "grader.server.web", None)
    monkeypatch.delattr("grader.server.web")
    with pytest.raises(MachineLacks, match=r"pip install 'grader\[serve\]'"), opened(course):
        pass


def test_a_process_that_cannot_start_is_tried_again(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As while the machine has no memory left."""
    started, failures = threading.Event(), [OSError("Cannot allocate memory")]

    class Process(Mock):
        def start(self) -> None:
            if failures:
                raise failures.pop()
            started.set()

    monkeypatch.setattr(serving, "_RESTART_S", 0)
    monkeypatch.setattr(serving.multiprocessing, "get_context", lambda _: Mock(Process=Process))
    with serving.judging(Settings(course, sandbox=False)):
        assert started.wait(60)


def test_tokens_for_the_class(course: Path, tmp_path: Path) -> None:
    """In a table that only the instructor can read; nobody is invented."""
    run = CliRunner().invoke
    assert run(app, ["classroom", "token", str(course), "--all"]).exit_code == 2
    (tmp_path / "students.csv").write_text("id\nann\nbob\n", encoding="utf-8")
    assert run(app, ["classroom", "roster", str(course), str(tmp_path / "students.csv")]).exit_code == 0
    file = tmp_path / "tokens.csv"
    done = run(app, ["classroom", "token", str(course), "--all", "--csv", str(file)])
    assert (done.exit_code, done.output) == (0, f"2 tokens in {file}.\n")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    rows = list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))
    tokens = course_tokens(course / serving.FOLDER)
    bearers = [tokens.bearer(row["token"]) for row in rows]
    assert ([row["student"] for row in rows], bearers) == (["ann", "bob"], ["ann", "bob"])
    done = run(app, ["classroom", "token", str(course), "eve"])
    assert "Note: eve: not in the gradebook yet" in done.output
