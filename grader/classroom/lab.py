"""What a learner's and an instructor's JupyterLab need, so that nbgrader's extensions find course and exchange."""

from __future__ import annotations

import json
import os
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grader.classroom import settings
from grader.errors import ClassroomError

__all__ = ["LabSetup", "hide_nbgrader", "instructor", "learner"]

_EXTENSIONS = ("assignment_list", "course_list", "formgrader", "validate_assignment")
_PLUGINS = ("assignment-list", "course-list", "create-assignment", "formgrader", "menu", "validate-assignment")


@dataclass(frozen=True)
class LabSetup:
    """How to start `jupyter lab`: root_dir (its working directory too) and its environment."""

    root_dir: Path
    env: dict[str, str] = field(default_factory=dict)


def learner(classroom: Path, work: Path | None = None, course_id: str | None = None) -> LabSetup:
    """A lab in which the Assignment List fetches into `work` (default: a folder named after the course) and submits.

    `classroom` is the exchange folder, or the course folder where the learner can read it.

    Raises:
        ClassroomError: `classroom` is neither, or holds several courses and none was named.
    """
    exchange, course_id = _find_exchange(Path(classroom).expanduser().absolute(), course_id)
    work = Path(work).expanduser().absolute() if work else Path.cwd() / course_id
    work.mkdir(parents=True, exist_ok=True)
    state = work / ".grader"
    state.mkdir(exist_ok=True)
    (state / settings.CONFIG_FILE).write_text(
        f"c = get_config()\nc.CourseDirectory.course_id = {course_id!r}\nc.Exchange.root = {str(exchange)!r}\n"
        f"c.Execute.timeout = {settings.VALIDATE_TIMEOUT_S}\n",
        encoding="utf-8",
    )
    return LabSetup(work, _hide(state, ("course-list", "create-assignment", "formgrader")))


def instructor(course: Path) -> LabSetup:
    """A lab in the course folder: Formgrader shows an error page where the course lies outside of the server's root.

    Raises:
        ClassroomError: `course` is no course folder.
    """
    course = Path(course).expanduser().absolute()
    settings.load(course)
    return LabSetup(course, _path())


def hide_nbgrader(state: Path) -> dict[str, str]:
    """The environment of a lab without a classroom, in which nbgrader's menus would lead nowhere."""
    return _hide(state, _PLUGINS)


def _hide(state: Path, plugins: tuple[str, ...]) -> dict[str, str]:
    hidden = {f"@jupyter/nbgrader:{plugin}": True for plugin in plugins}
    servers = {name: name.replace("_", "-") not in plugins for name in _EXTENSIONS}
    extensions = {f"nbgrader.server_extensions.{name}": on for name, on in servers.items()}
    _write(state / "labconfig" / "page_config.json", {"disabledExtensions": hidden})
    _write(state / "jupyter_server_config.json", {"ServerApp": {"jpserver_extensions": extensions}})
    paths = [str(state), os.environ.get("JUPYTER_CONFIG_PATH", "")]
    return {**_path(), "JUPYTER_CONFIG_PATH": os.pathsep.join(path for path in paths if path)}


def _path() -> dict[str, str]:
    """nbgrader runs `alembic` by its bare name, also where the virtual environment is not active."""
    return {"PATH": os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)])}


def _find_exchange(classroom: Path, course_id: str | None) -> tuple[Path, str]:
    if (classroom / settings.CONFIG_FILE).is_file():
        config = settings.load(classroom)
        return Path(str(config.Exchange.root)), course_id or str(config.CourseDirectory.course_id)
    courses = sorted(path.parent.name for path in classroom.glob("*/outbound") if path.is_dir())
    if not courses:
        raise ClassroomError(
            f"{classroom} is neither an exchange with a released assignment nor a course folder: name the folder that "
            "your instructor gave you."
        )
    if course_id is None and len(courses) > 1:
        raise ClassroomError(f"{classroom} holds several courses, {', '.join(courses)}: say which with --course-id.")
    if course_id is not None and course_id not in courses:
        raise ClassroomError(f"{classroom} holds no course {course_id!r}; it holds {', '.join(courses)}.")
    return classroom, course_id or courses[0]


def _write(path: Path, data: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
