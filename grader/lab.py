"""`grader lab`: JupyterLab on the learner's folder, on a classroom or on an instructor's course."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

from grader.errors import MachineLacks
from grader.hardware import cache_folder, toolkit
from grader.installation import COURSE, WORK

# The learner's folder: a copy of the course that follows the course and never overwrites a learner's work.

_MANIFEST = Path(".grader") / "copied.json"


@dataclass(frozen=True)
class FolderReport:
    """The result of `fill`; all but `folder` and `course` are sorted paths inside them.

    `kept` are files that the learner has changed and that have a newer version in the course.
    """

    folder: str
    course: str
    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    def to_text(self) -> str:
        """A few lines for people."""
        lines = [f"Your folder: {self.folder}"]
        if "glossary.ipynb" in (*self.added, *self.updated, *self.kept, *self.unchanged):
            lines.append("  README.ipynb is the syllabus, glossary.ipynb explains the terms")
        if self.added:
            lines.append(f"  {_files(len(self.added))} copied from the course")
        if self.updated:
            lines.append(f"  {_files(len(self.updated))} updated from the course")
        for path in self.kept:
            lines.append(
                f"  {path}: you have changed it, so yours is kept; the course's newer version is {self.course}/{path}"
            )
        return "\n".join(lines)


def fill(folder: Path, course: Path) -> FolderReport:
    """Copies the course into `folder`. Files that the learner has changed since then are left as they are.

    The folder keeps the hashes of the copied files: a file is unchanged while its hash is the same. A file that the
    learner has deleted is copied again. Nothing is ever deleted.

    Raises:
        MachineLacks: there is no course to copy, or the folder cannot be written to.
    """
    folder, course = folder.expanduser().absolute(), course.expanduser().absolute()
    files = _course_files(course)
    if not files:
        raise MachineLacks(f"There are no notebooks in {course}: make them with `grader build`.")
    done: dict[str, list[str]] = {"added": [], "updated": [], "kept": [], "unchanged": []}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        copied = _read_manifest(folder)
        try:
            for path in files:
                done[_bring(path, folder, course, copied)].append(path)
        finally:  # also when interrupted, so that the copied files count as unchanged
            _write(folder / _MANIFEST, (json.dumps(copied, indent=1, sort_keys=True) + "\n").encode())
    except OSError as error:
        raise MachineLacks(f"{error.filename or folder} cannot be written to: {error.strerror}.") from None
    return FolderReport(str(folder), str(course), **{name: tuple(paths) for name, paths in done.items()})


def _bring(path: str, folder: Path, course: Path, copied: dict[str, str]) -> str:
    """Updates one file if no work is lost, and returns what was done; `copied` is kept current."""
    content = (course / path).read_bytes()
    fresh, target = _hash(content), folder / path
    if not os.path.lexists(target):
        _write(target, content)
        copied[path] = fresh
        return "added"
    if not target.is_file():
        return "kept"
    now = _hash(target.read_bytes())
    if now == fresh:
        copied[path] = fresh
        return "unchanged"
    if now == copied.get(path):
        _write(target, content)
        copied[path] = fresh
        return "updated"
    return "unchanged" if copied.get(path) == fresh else "kept"


def _course_files(course: Path) -> list[str]:
    if not course.is_dir() or not any(course.rglob("*.ipynb")):
        return []
    paths = [path.relative_to(course) for path in course.rglob("*") if path.is_file()]
    return sorted(path.as_posix() for path in paths if not any(part.startswith((".", "__")) for part in path.parts))


def _read_manifest(folder: Path) -> dict[str, str]:
    try:
        data = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # missing or damaged: then every file counts as changed, and no work is lost
        return {}
    return {str(path): str(value) for path, value in data.items()} if isinstance(data, dict) else {}


def _write(target: Path, content: bytes) -> None:
    """Writes atomically: a learner may interrupt the command at any moment."""
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        fresh.write_bytes(content)
        os.replace(fresh, target)
    finally:
        fresh.unlink(missing_ok=True)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _files(count: int) -> str:
    return f"{count} file" if count == 1 else f"{count} files"


# By default, JupyterLab asks whether it may fetch news from its makers, and checks for updates.
_SETTINGS = {"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False}}


@dataclass(frozen=True)
class Lab:
    """How to start JupyterLab: run `command` in the folder `root`, with `environment` merged into this process's.

    `folder` reports what was copied; it is None in a classroom, where the Assignment List brings the notebooks.
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
    """Makes the folder that JupyterLab opens, and returns how to start it there.

    Args:
        port: by default, 8888 or the next free one.
        folder: the learner's folder; by default `work/` in the checkout, or `gpu-course-work` in your home if there is
            no checkout; in a classroom, one named after the course.
        course: the folder to copy from; by default the course that came with this package.
        classroom: an exchange, or a course folder: the Assignment List fetches and submits its assignments.
        course_id: the course in the exchange, if there are several.
        instructor: a course folder to open with Formgrader.
        arguments: passed on to `jupyter lab`.

    Raises:
        MachineLacks: JupyterLab is not installed, there is no course to copy, or a folder cannot be written to.
        ClassroomError: `classroom` or `instructor` is not such a folder.
    """
    if importlib.util.find_spec("jupyterlab") is None:
        raise MachineLacks(
            "JupyterLab is not installed here: `make lab` in a checkout installs it, and so does pip with the wheel."
        )
    if classroom and instructor:
        raise MachineLacks("A lab is either a learner's (--classroom) or an instructor's (--instructor), not both.")
    from grader.classroom import settings as classroom_lab

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
        report = fill(folder or WORK, course or COURSE)
        root = Path(report.folder)
        environment = classroom_lab.hide_nbgrader(root / ".grader")
        if (root / "README.ipynb").is_file():
            url = "/lab/tree/README.ipynb"
    command = _command(root, port, browser, url)
    return Lab(str(root), (*command, *arguments), _with_settings(environment | toolkit(os.environ)), report)


def start(lab: Lab) -> NoReturn:
    """Replaces this process with JupyterLab, which receives its signals and sets its exit status."""
    os.chdir(lab.root)
    os.environ.update(lab.environment)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(lab.command[0], lab.command)


def _command(root: Path, port: int | None, browser: bool, url: str) -> tuple[str, ...]:
    command = [sys.executable, "-m", "jupyterlab"]
    command += [f"--ServerApp.root_dir={root}", f"--LabApp.default_url={url}"]
    command += ["--ServerApp.answer_yes=True"]  # Ctrl-C stops it at once, without a question
    # A login shell, JupyterLab's choice if it is started without a terminal, may drop our PATH, and so `grader`.
    shell = os.environ.get("SHELL") or shutil.which("bash") or "sh"
    command += [f"--ServerApp.terminado_settings={ {'shell_command': [shell]}!r}"]
    if port is not None:
        command += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    if not browser:
        command += ["--no-browser"]
    if os.geteuid() == 0:
        command += ["--allow-root"]
    return tuple(command)


def _with_settings(environment: dict[str, str]) -> dict[str, str]:
    """Adds a folder of default settings. It comes last: settings of the classroom or the person override it."""
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
