"""The Dockerfile and the development container: each instruction is checked, since no test can fetch a base image."""

from __future__ import annotations

import fnmatch
import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.test_packaging import ROOT, _make

INSTRUCTION = re.compile(r"^(?P<name>[A-Z]+)\s+(?P<text>.*)$")


def _instructions() -> list[tuple[str, str]]:
    lines = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if line and not line.startswith("#")]
    found = [INSTRUCTION.match(line) for line in lines]
    assert all(found), "an instruction takes one line"
    return [(each["name"], each["text"]) for each in found if each]


def _runs() -> list[str]:
    """The shell commands, in their order."""
    return [text for name, text in _instructions() if name == "RUN"]


def test_the_instructions_are_in_an_order_that_works() -> None:
    """The base may be another image; an argument is declared in the stage that uses it; nothing runs as root."""
    names = [name for name, _ in _instructions()]
    assert names[:3] == ["ARG", "FROM", "ARG"]
    texts = dict(_instructions())
    assert texts["FROM"] == "${BASE}"
    assert names.index("USER") < names.index("COPY") < len(names) - 1 - names[::-1].index("RUN")
    assert texts["COPY"] == f"--chown={texts['USER']} . {texts['WORKDIR']}"
    assert f"chown {texts['USER']} {texts['WORKDIR']}" in _runs()[1]


@pytest.mark.parametrize("command", _runs())
def test_the_shell_understands_each_command(command: str) -> None:
    """Its syntax, and the packages of Debian that the README asks for, too."""
    subprocess.run(["sh", "-n", "-c", command], check=True)
    if "apt-get install" in command:
        packages = re.search(r"--no-install-recommends ([\w+ -]+?) &&", command)
        assert packages
        assert set(packages[1].split()) == {"g++", "make"}


@pytest.mark.parametrize("extra", ["", "gpu", "gpu-cu12"])
def test_the_image_installs_what_make_installs(extra: str, tmp_path: Path) -> None:
    """Without a question, in the tree that .dockerignore leaves, which has all that make needs."""
    (command,) = [each for each in _runs() if each.startswith("make ")]
    _, target, *settings = shlex.split(command.replace("${EXTRA}", extra))
    assert "YES=1" in settings
    tree = tmp_path / "course"
    tree.mkdir()
    ignored = [*(ROOT / ".dockerignore").read_text().split(), ".git"]
    for path in ROOT.iterdir():
        if not any(fnmatch.fnmatch(path.name, each) for each in ignored):
            (tree / path.name).symlink_to(path)
    done = _make("-n", target, *settings, folder=tree)
    assert done.returncode == 0, done.stderr
    assert f"-e '.[{extra}]'" in done.stdout if extra else "-e '.'" in done.stdout


def test_the_command_is_one_that_grader_lab_takes() -> None:
    """The port that the image exposes is the one that JupyterLab gets."""
    texts = dict(_instructions())
    command = json.loads(texts["CMD"])
    assert command[:2] == [".venv/bin/grader", "lab"]
    assert command[command.index("--port") + 1] == texts["EXPOSE"]
    for option in command[2 : command.index("--")]:
        if option.startswith("--"):
            assert option in (ROOT / "grader/cli/course_commands.py").read_text()


def test_the_development_container_builds_the_dockerfile() -> None:
    """Its paths are those of the image, and its Dockerfile is the one that is checked here."""
    file = ROOT / ".devcontainer/devcontainer.json"
    container = json.loads(file.read_text())
    assert (file.parent / container["build"]["dockerfile"]).resolve() == ROOT / "Dockerfile"
    assert (file.parent / container["build"]["context"]).resolve() == ROOT
    texts = dict(_instructions())
    assert container["remoteUser"] == texts["USER"]
    assert container["workspaceFolder"] == f"{texts['WORKDIR']}/work"
    declared = {text.partition("=")[0] for name, text in _instructions() if name == "ARG"}
    assert set(container["build"]["args"]) <= declared
