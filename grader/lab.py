"""`grader lab`: JupyterLab on the learner's folder, on a classroom or on an instructor's course."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

from grader.errors import MachineLacks
from grader.hardware import cache_folder, toolkit
from grader.workfolder import FolderReport, fill

__all__ = ["Lab", "prepare", "start"]

_ROOT = Path(__file__).resolve().parents[1]
# JupyterLab would ask whether it may fetch its makers' news, and would fetch them.
_SETTINGS = {"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False}}


@dataclass(frozen=True)
class Lab:
    """How JupyterLab is to be started: `command` in the folder `root`, with `environment` merged into this one's.

    `folder` says what was copied; it is None in a classroom, where the Assignment List brings the notebooks.
    """

    root: str
    command: tuple[str, ...]
    environment: dict[str, str]
    folder: FolderReport | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def prepare(
    *,
    port: int | None = None,
    browser: bool = True,
    folder: Path | None = None,
    course: Path | None = None,
    classroom: Path | None = None,
    course_id: str | None = None,
    instructor: Path | None = None,
    arguments: Sequence[str] = (),
) -> Lab:
    """Makes the folder that JupyterLab opens, and says how to start it there.

    Args:
        port: 8888 or the next free one where none is given.
        folder: the learner's folder; by default `work/` in the checkout, in a classroom one named after the course.
        course: what the folder is filled from; by default the checkout's `course/`.
        classroom: an exchange, or a course folder: its assignments are fetched and submitted by the Assignment List.
        course_id: which course of the exchange, where it holds several.
        instructor: a course folder, to be opened with Formgrader.
        arguments: handed on to `jupyter lab`.

    Raises:
        MachineLacks: JupyterLab is not installed, there is no course to copy, or a folder cannot be written to.
        ClassroomError: `classroom` or `instructor` is no such folder.
    """
    if importlib.util.find_spec("jupyterlab") is None:
        raise MachineLacks("JupyterLab is not installed here: `make lab` in the checkout installs it.")
    if classroom and instructor:
        raise MachineLacks("A lab is either a learner's (--classroom) or an instructor's (--instructor), not both.")
    from grader.classroom import lab as classroom_lab

    report = None
    url = "/lab"
    if instructor or classroom:
        setup = (
            classroom_lab.instructor(instructor)
            if instructor
            else classroom_lab.learner(classroom or Path(), folder, course_id)
        )
        root, environment = setup.root_dir, setup.env
    else:
        report = fill(folder or _ROOT / "work", course or _ROOT / "course")
        root = Path(report.folder)
        environment = classroom_lab.hide_nbgrader(root / ".grader")
        if (root / "README.ipynb").is_file():
            url = "/lab/tree/README.ipynb"
    command = _command(root, port, browser, url)
    return Lab(str(root), (*command, *arguments), _with_settings(environment | toolkit(os.environ)), report)


def start(lab: Lab) -> NoReturn:
    """Becomes JupyterLab: its signals and its exit status are this process's."""
    os.chdir(lab.root)
    os.environ.update(lab.environment)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(lab.command[0], lab.command)


def _command(root: Path, port: int | None, browser: bool, url: str) -> tuple[str, ...]:
    command = [sys.executable, "-m", "jupyterlab"]
    command += [f"--ServerApp.root_dir={root}", f"--LabApp.default_url={url}"]
    command += ["--ServerApp.answer_yes=True"]  # Ctrl-C ends it at once, without a question
    if port is not None:
        command += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    if not browser:
        command += ["--no-browser"]
    if os.geteuid() == 0:
        command += ["--allow-root"]
    return tuple(command)


def _with_settings(environment: dict[str, str]) -> dict[str, str]:
    """Adds a folder of default settings. It comes last: what the classroom or the person has set counts more."""
    state = cache_folder() / "lab"
    target = state / "labconfig" / "default_setting_overrides.json"
    text = json.dumps(_SETTINGS, indent=2) + "\n"
    try:
        if not target.is_file() or target.read_text(encoding="utf-8") != text:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise MachineLacks(f"{target} cannot be written to: {error.strerror}.") from None
    before = environment.get("JUPYTER_CONFIG_PATH", os.environ.get("JUPYTER_CONFIG_PATH", ""))
    return {**environment, "JUPYTER_CONFIG_PATH": os.pathsep.join(path for path in (before, str(state)) if path)}
