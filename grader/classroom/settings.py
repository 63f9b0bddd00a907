"""nbgrader's settings for a course folder, and for the JupyterLab of a learner or an instructor."""

from __future__ import annotations

import json
import logging
import os
import shlex
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grader.errors import ClassroomError

CONFIG_FILE = "nbgrader_config.py"
VALIDATE_TIMEOUT_S = 600  # for a cell under the Validate button: simulated checks take longer than nbgrader's 30 s

_EXTENSIONS = ("assignment_list", "course_list", "formgrader", "validate_assignment")
_PLUGINS = ("assignment-list", "course-list", "create-assignment", "formgrader", "menu", "validate-assignment")


@dataclass(frozen=True)
class LabSetup:
    """How to start `jupyter lab`: its root and working directory, and its environment."""

    root_dir: Path
    env: dict[str, str] = field(default_factory=dict)


def learner(classroom: Path, work: Path | None = None, course_id: str | None = None) -> LabSetup:
    """A lab in which the Assignment List fetches into `work`, by default a folder named after the course, and submits.

    `classroom` is the exchange, or a course folder that the learner can read.

    Raises:
        ClassroomError: `classroom` is neither, or holds several courses and `course_id` is not given.
    """
    exchange, course_id = _find_exchange(Path(classroom).expanduser().absolute(), course_id)
    work = Path(work).expanduser().absolute() if work else Path.cwd() / course_id
    work.mkdir(parents=True, exist_ok=True)
    state = work / ".grader"
    state.mkdir(exist_ok=True)
    (state / CONFIG_FILE).write_text(
        f"c = get_config()\nc.CourseDirectory.course_id = {course_id!r}\nc.Exchange.root = {str(exchange)!r}\n"
        f"c.Execute.timeout = {VALIDATE_TIMEOUT_S}\n",
        encoding="utf-8",
    )
    return LabSetup(work, _hide(state, ("course-list", "create-assignment", "formgrader")))


def instructor(course: Path) -> LabSetup:
    """A lab in the course folder. Formgrader shows an error page if the course is outside the server's root.

    Raises:
        ClassroomError: `course` is not a course folder.
    """
    course = Path(course).expanduser().absolute()
    load(course)
    return LabSetup(course, scripts_path())


def hide_nbgrader(state: Path) -> dict[str, str]:
    """The environment of a lab without a classroom, where nbgrader's menus would be useless."""
    return _hide(state, _PLUGINS)


def _hide(state: Path, plugins: tuple[str, ...]) -> dict[str, str]:
    hidden = {f"@jupyter/nbgrader:{plugin}": True for plugin in plugins}
    servers = {name: name.replace("_", "-") not in plugins for name in _EXTENSIONS}
    extensions = {f"nbgrader.server_extensions.{name}": on for name, on in servers.items()}
    _write(state / "labconfig" / "page_config.json", {"disabledExtensions": hidden})
    _write(state / "jupyter_server_config.json", {"ServerApp": {"jpserver_extensions": extensions}})
    paths = [str(state), os.environ.get("JUPYTER_CONFIG_PATH", "")]
    return {**scripts_path(), "JUPYTER_CONFIG_PATH": os.pathsep.join(path for path in paths if path)}


def scripts_path() -> dict[str, str]:
    """A PATH with the virtual environment's scripts, because nbgrader runs `alembic` by its bare name."""
    return {"PATH": os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)])}


def _find_exchange(classroom: Path, course_id: str | None) -> tuple[Path, str]:
    if (classroom / CONFIG_FILE).is_file():
        config = load(classroom)
        return Path(str(config.Exchange.root)), course_id or str(config.CourseDirectory.course_id)
    courses = sorted(path.parent.name for path in classroom.glob("*/outbound") if path.is_dir())
    if not courses:
        raise ClassroomError(
            f"{classroom} is neither an exchange with a released assignment nor a course folder; name the folder that "
            "your instructor gave you."
        )
    if course_id is None and len(courses) > 1:
        raise ClassroomError(f"{classroom} has several courses, {', '.join(courses)}: choose one with --course-id.")
    if course_id is not None and course_id not in courses:
        raise ClassroomError(f"{classroom} has no course {course_id!r}; it has {', '.join(courses)}.")
    return classroom, course_id or courses[0]


def _write(path: Path, data: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


_TEMPLATE = '''\
"""nbgrader's settings of this course, written once by `grader classroom init`. Your changes are never overwritten."""

from pathlib import Path

from grader.classroom import settings

c = get_config()  # noqa: F821

# The judge instead of nbgrader's Execute, stubs that fit CUDA C++, no hidden tests in feedback.
settings.apply(c)

c.CourseDirectory.root = str(Path(__file__).resolve().parent)
c.CourseDirectory.course_id = {course_id!r}

# The exchange, where learners on this machine fetch and submit: they need write access.
c.Exchange.root = {exchange!r}

# Judge on the GPU ("cuda"), in the simulators ("simulator"), or on the GPU if there is one ("auto").
c.JudgeCells.device = "auto"

# Also inspect the kernels that ran, for the notes with the score. This takes longer.
c.JudgeCells.kernels = False

# Late work: "none" for no penalty, "zero" for no points, "per day" for a share of the points for each day begun.
c.LateSubmissionPlugin.penalty_method = "none"
c.LatePolicy.percent_per_day = 10
'''


def config_text(course_id: str, exchange: Path) -> str:
    """The text of a new course's `nbgrader_config.py`."""
    return _TEMPLATE.format(course_id=course_id, exchange=str(exchange))


def apply(c: Any) -> None:
    """Configure nbgrader, whose configuration is `c`, to grade with this judge.

    Classes are given by their dotted names, so that commands that convert no notebook do not import them.
    """
    c.GenerateAssignment.preprocessors = [
        "nbgrader.preprocessors.IncludeHeaderFooter", "nbgrader.preprocessors.LockCells",
        "grader.authoring.notebooks.ClearSolutions", "nbgrader.preprocessors.ClearOutput",
        "nbgrader.preprocessors.CheckCellMetadata", "nbgrader.preprocessors.ComputeChecksums",
        "nbgrader.preprocessors.SaveCells", "nbgrader.preprocessors.ClearHiddenTests",
        "nbgrader.preprocessors.ClearMarkScheme", "nbgrader.preprocessors.ComputeChecksums",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]  # fmt: skip
    c.Autograde.exporter_class = "grader.classroom.released_cells.HandedInExporter"
    c.Autograde.sanitize_preprocessors = [
        "grader.classroom.released_cells.RestoreCells", "nbgrader.preprocessors.ClearOutput",
        "nbgrader.preprocessors.DeduplicateIds", "nbgrader.preprocessors.OverwriteKernelspec",
        "nbgrader.preprocessors.OverwriteCells", "nbgrader.preprocessors.CheckCellMetadata",
    ]  # fmt: skip
    c.Autograde.autograde_preprocessors = [
        "grader.classroom.preprocessor.JudgeCells", "nbgrader.preprocessors.LimitOutput",
        "grader.classroom.preprocessor.SaveVerdicts", "nbgrader.preprocessors.AssignLatePenalties",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]  # fmt: skip
    c.GenerateFeedback.exporter_class = "grader.classroom.student_feedback.FeedbackPage"
    c.FeedbackPage.template_name = "class_feedback"
    c.FeedbackPage.extra_template_basedirs = [str(Path(__file__).parent / "templates")]
    c.GenerateFeedback.preprocessors = [
        "nbgrader.preprocessors.GetGrades",
        "grader.classroom.released_cells.HideTests",
        "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
    ]
    c.AssignLatePenalties.plugin_class = "grader.classroom.term.late_policy.LatePolicy"
    c.ExchangeFactory.collect = "grader.classroom.nbgrader_apps.Collect"
    c.OverwriteCells.add_missing_cells = True
    c.Execute.timeout = VALIDATE_TIMEOUT_S


def is_exchange(folder: Path) -> bool:
    """Whether a folder without settings is open to all users of this machine, or contains nbgrader's inboxes."""
    if not folder.is_dir() or (folder / CONFIG_FILE).exists():
        return False
    return bool(folder.stat().st_mode & 0o002) or any(folder.glob("*/inbound"))


def load(course: Path) -> Any:
    """The configuration that nbgrader's own commands would see when run in `course`.

    Raises:
        ClassroomError: there is no `nbgrader_config.py`, or running it failed.
    """
    from nbgrader.apps import NbGrader
    from traitlets.config.loader import PyFileConfigLoader

    course = course.resolve()
    if is_exchange(course):
        raise ClassroomError(f"{course} is an exchange; name the course folder, which has {CONFIG_FILE} in it.")
    if not (course / CONFIG_FILE).is_file():
        raise ClassroomError(
            f"{course} is not a course folder: it has no {CONFIG_FILE}. Create one with `grader classroom init "
            f"{shlex.quote(str(course))}`."
        )
    app = NbGrader(log_level=logging.ERROR)  # no warning that the user has no configuration
    app.load_cwd_config = False
    app.load_config_file()  # of the user and the machine; the course's settings override them
    config = app.config
    try:
        config.merge(PyFileConfigLoader(CONFIG_FILE, path=str(course)).load_config())
    except Exception as error:  # the file is the instructor's program
        raise ClassroomError(f"{course / CONFIG_FILE} fails with {type(error).__name__}: {error}.") from None
    config.CourseDirectory.root = str(course)
    return config
