"""nbgrader's settings for a course: what `nbgrader_config.py` of a course folder applies."""

from __future__ import annotations

import logging
import shlex
from pathlib import Path
from typing import Any

__all__ = ["CONFIG_FILE", "VALIDATE_TIMEOUT_S", "apply", "config_text", "is_exchange", "load"]

CONFIG_FILE = "nbgrader_config.py"
VALIDATE_TIMEOUT_S = 600  # of a cell under the Validate button: simulated checks take longer than nbgrader's 30 s

_TEMPLATE = '''\
"""nbgrader's settings of this course. Made by `grader classroom init`; edit it as you like, it is never overwritten."""

from pathlib import Path

from grader.classroom import settings

c = get_config()  # noqa: F821

# The judge in the place of nbgrader's Execute, stubs that fit CUDA C++, no hidden tests in feedback.
settings.apply(c)

c.CourseDirectory.root = str(Path(__file__).resolve().parent)
c.CourseDirectory.course_id = {course_id!r}

# Where learners of this machine fetch and submit. They must be able to reach it; nobody else writes to it.
c.Exchange.root = {exchange!r}

# Judge on the GPU ("cuda"), in the simulators ("simulator"), or on the GPU where there is one ("auto").
c.JudgeCells.device = "auto"

# Have the notes beside the score rest on the kernels that ran, too: that takes longer.
c.JudgeCells.kernels = False

# Late work: "none" takes nothing off, "zero" gives nothing.
c.LateSubmissionPlugin.penalty_method = "none"
'''


def config_text(course_id: str, exchange: Path) -> str:
    """The text of a new course's `nbgrader_config.py`."""
    return _TEMPLATE.format(course_id=course_id, exchange=str(exchange))


def apply(c: Any) -> None:
    """Set in nbgrader's configuration `c` what this course's grading rests on.

    The lists name classes by dotted path, so that commands which convert nothing import nothing.
    """
    c.GenerateAssignment.preprocessors = [
        "nbgrader.preprocessors.IncludeHeaderFooter",
        "nbgrader.preprocessors.LockCells",
        "grader.authoring.preprocess.ClearSolutions",
        "nbgrader.preprocessors.ClearOutput",
        "nbgrader.preprocessors.CheckCellMetadata",
        "nbgrader.preprocessors.ComputeChecksums",
        "nbgrader.preprocessors.SaveCells",
        "nbgrader.preprocessors.ClearHiddenTests",
        "nbgrader.preprocessors.ClearMarkScheme",
        "nbgrader.preprocessors.ComputeChecksums",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]
    c.Autograde.exporter_class = "grader.classroom.handed_in.HandedInExporter"
    c.Autograde.sanitize_preprocessors = [
        "grader.classroom.restore.RestoreCells",
        "nbgrader.preprocessors.ClearOutput",
        "nbgrader.preprocessors.DeduplicateIds",
        "nbgrader.preprocessors.OverwriteKernelspec",
        "nbgrader.preprocessors.OverwriteCells",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]
    c.Autograde.autograde_preprocessors = [
        "grader.classroom.preprocessor.JudgeCells",
        "nbgrader.preprocessors.LimitOutput",
        "grader.classroom.preprocessor.SaveVerdicts",
        "nbgrader.preprocessors.AssignLatePenalties",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]
    c.GenerateFeedback.preprocessors = [
        "nbgrader.preprocessors.GetGrades",
        "grader.classroom.restore.HideTests",
        "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
    ]
    c.ExchangeFactory.collect = "grader.classroom.apps.Collect"
    c.OverwriteCells.add_missing_cells = True
    c.Execute.timeout = VALIDATE_TIMEOUT_S


def is_exchange(folder: Path) -> bool:
    """Whether a folder that is no course is open to all users of this machine, or has nbgrader's inboxes in it."""
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

    from grader.errors import ClassroomError

    course = course.resolve()
    if is_exchange(course):
        raise ClassroomError(f"{course} is an exchange; name the course folder, which holds {CONFIG_FILE}.")
    if not (course / CONFIG_FILE).is_file():
        raise ClassroomError(
            f"{course} is not a course folder: it has no {CONFIG_FILE}. Make one with `grader classroom init "
            f"{shlex.quote(str(course))}`."
        )
    app = NbGrader(log_level=logging.ERROR)  # else it says that it found no file of the user's
    app.load_cwd_config = False
    app.load_config_file()  # a user's or the machine's own nbgrader settings come first, the course's after them
    config = app.config
    try:
        config.merge(PyFileConfigLoader(CONFIG_FILE, path=str(course)).load_config())
    except Exception as error:  # the file is the instructor's program
        raise ClassroomError(f"{course / CONFIG_FILE} fails with {type(error).__name__}: {error}.") from None
    config.CourseDirectory.root = str(course)
    return config
