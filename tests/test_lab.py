"""`grader lab` makes the folder, runs JupyterLab there and ends with it."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from grader.errors import MachineLacks
from grader.lab import prepare
from tests.pace import PACE

pytest.importorskip("jupyterlab")
pytest.importorskip("nbgrader")

ROOT = Path(__file__).resolve().parents[1]
TOKEN = "only-for-this-test"
START_S = 90.0 * PACE
NEWS = "@jupyterlab/apputils-extension:notification"


@pytest.fixture
def course(tmp_path: Path) -> Path:
    folder = tmp_path / "course"
    folder.mkdir()
    notebook = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (folder / "README.ipynb").write_text(json.dumps(notebook))
    return folder


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's settings are neither read nor written."""
    for name in (
        "HOME",
        "JUPYTER_CONFIG_DIR",
        "JUPYTER_DATA_DIR",
        "JUPYTER_RUNTIME_DIR",
        "XDG_CACHE_HOME",
        "IPYTHONDIR",
    ):
        monkeypatch.setenv(name, str(tmp_path / "home" / name.lower()))
    monkeypatch.delenv("JUPYTER_CONFIG_PATH", raising=False)
    monkeypatch.setenv("JUPYTER_TOKEN", TOKEN)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@pytest.fixture
def start(private: None, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """`start("--port", "9000")` runs `grader lab` and returns its process, which ends with the test."""
    running = []
    terminal, keyboard = pty.openpty()  # Jupyter asks questions on a terminal

    def run(*arguments: str) -> subprocess.Popen[bytes]:
        with (tmp_path / "log").open("wb") as log:
            command = [sys.executable, "-m", "grader", "lab", *arguments]
            running.append(
                subprocess.Popen(command, stdin=keyboard, stdout=log, stderr=log, cwd=tmp_path, start_new_session=True)
            )
        return running[-1]

    yield run
    for process in running:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    os.close(terminal)
    os.close(keyboard)


def _get(url: str) -> Any:
    with urllib.request.urlopen(f"{url}?token={TOKEN}", timeout=20 * PACE) as answer:
        return answer.read()


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    limit = time.monotonic() + START_S
    while True:
        try:
            _get(f"{url}/api/status")
            return
        except (urllib.error.URLError, OSError):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < limit, log.read_text()
            time.sleep(0.2)


def test_lab_opens_the_syllabus_and_ends_with_one_interrupt(
    start: Callable[..., subprocess.Popen[bytes]], course: Path, tmp_path: Path, free_port: int
) -> None:
    """The folder is served on the requested port, no news is fetched, and Ctrl-C needs no answer."""
    process = start("--no-browser", "--port", str(free_port), "--folder", "work", "--course", str(course))
    url, log = f"http://127.0.0.1:{free_port}", tmp_path / "log"
    _wait(process, url, log)
    names = {item["name"] for item in json.loads(_get(f"{url}/api/contents"))["content"]}
    assert names == {"README.ipynb"}
    settings = json.loads(_get(f"{url}/lab/api/settings/{NEWS}"))
    assert settings["schema"]["properties"]["fetchNews"]["default"] == "false"
    assert b"JupyterLab" in _get(f"{url}/lab/tree/README.ipynb")
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30 * PACE) == 0, log.read_text()
    text = log.read_text()
    assert "1 file copied from the course" in text
    assert f":{free_port}/lab/tree/README.ipynb" in text
    assert "Traceback" not in text
    assert "y/[n]" not in text


def test_a_port_that_is_taken_is_reported(
    start: Callable[..., subprocess.Popen[bytes]], course: Path, tmp_path: Path
) -> None:
    """A requested port is not silently replaced by another."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        process = start("--no-browser", "--port", str(port), "--folder", "work", "--course", str(course))
        assert process.wait(timeout=START_S) != 0
    assert f"port {port} is not available" in (tmp_path / "log").read_text()


@pytest.mark.usefixtures("private")
def test_a_learner_alone_gets_the_course(course: Path, tmp_path: Path) -> None:
    """JupyterLab starts in the learner's folder, on the syllabus, with nbgrader's menus out of the way."""
    lab = prepare(folder=tmp_path / "work", course=course, browser=False, port=9000, arguments=["--ip=0.0.0.0"])
    assert lab.root == str(tmp_path / "work")
    assert lab.folder is not None
    assert lab.folder.added == ("README.ipynb",)
    command = list(lab.command)
    assert command[:3] == [sys.executable, "-m", "jupyterlab"]
    assert command[-1] == "--ip=0.0.0.0"
    assert {"--no-browser", "--ServerApp.port=9000", f"--ServerApp.root_dir={tmp_path / 'work'}"} <= set(command)
    first = Path(lab.environment["JUPYTER_CONFIG_PATH"].split(os.pathsep)[0])
    hidden = json.loads((first / "labconfig" / "page_config.json").read_text())["disabledExtensions"]
    assert hidden["@jupyter/nbgrader:assignment-list"]
    json.dumps(lab.to_dict())


@pytest.mark.usefixtures("private")
def test_a_learner_in_a_classroom_fetches_assignments(tmp_path: Path) -> None:
    """The folder is not filled: the Assignment List brings what the instructor released."""
    (tmp_path / "exchange" / "gpu-course" / "outbound").mkdir(parents=True)
    lab = prepare(classroom=tmp_path / "exchange", folder=tmp_path / "mine")
    assert lab.root == str(tmp_path / "mine")
    assert lab.folder is None
    assert "--LabApp.default_url=/lab" in lab.command
    assert list((tmp_path / "mine").glob("*.ipynb")) == []


@pytest.mark.usefixtures("private")
def test_an_impossible_lab_is_one_sentence(course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two kinds of lab at once, or a machine without JupyterLab."""
    with pytest.raises(MachineLacks, match="not both"):
        prepare(classroom=tmp_path, instructor=tmp_path)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MachineLacks, match="make lab"):
        prepare(folder=tmp_path / "work", course=course)


@pytest.mark.usefixtures("private")
def test_the_users_settings_come_first(course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller's JUPYTER_CONFIG_PATH is kept, before the lab's own folder."""
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "/etc/theirs")
    paths = prepare(folder=tmp_path / "work", course=course).environment["JUPYTER_CONFIG_PATH"].split(os.pathsep)
    assert "/etc/theirs" in paths
    assert (Path(paths[-1]) / "labconfig" / "default_setting_overrides.json").is_file()


@pytest.mark.usefixtures("private")
def test_terminals_find_the_commands(course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`grader` is on PATH, and terminals run no login shell, which would set PATH again."""
    from jupyter_server.serverapp import ServerApp

    monkeypatch.setenv("SHELL", "/bin/my shell")
    lab = prepare(folder=tmp_path / "work", course=course)
    assert lab.environment["PATH"].split(os.pathsep)[0] == sysconfig.get_path("scripts")
    (option,) = (each for each in lab.command if "terminado_settings" in each)
    settings = ServerApp.terminado_settings.from_string(option.partition("=")[2])
    assert settings == {"shell_command": ["/bin/my shell"]}


@pytest.mark.usefixtures("private")
def test_notebooks_find_the_cuda_compiler(course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`load_inline` reads CUDA_HOME. A value that the user set stays, and a torch without CUDA needs none."""
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.setattr("grader.hardware.cuda_home", lambda major: Path(f"/toolkit-{major}"))
    monkeypatch.setattr("grader.hardware.torch_cuda", lambda: 13)
    assert prepare(folder=tmp_path / "work", course=course).environment["CUDA_HOME"] == "/toolkit-13"
    monkeypatch.setattr("grader.hardware.torch_cuda", lambda: None)
    assert "CUDA_HOME" not in prepare(folder=tmp_path / "work", course=course).environment
    monkeypatch.setattr("grader.hardware.torch_cuda", lambda: 13)
    monkeypatch.setenv("CUDA_HOME", "/theirs")
    assert "CUDA_HOME" not in prepare(folder=tmp_path / "work", course=course).environment
