"""Create a course folder for nbgrader and an exchange on this machine; existing files are kept.

An upgrade may replace the files that are still as `init` made them.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shlex
import shutil
import stat
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grader.classroom import course_folder, settings
from grader.classroom.answers import InitResult
from grader.errors import ClassroomError
from grader.files import write_in_one_step

RECORD = ".made-by-init.json"  # in the course folder: a hash per file
_COURSE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_EXCHANGE_MODE = 0o1777  # nbgrader lets everyone write; the sticky bit keeps users from moving each other's files


@dataclass
class Filled:
    """Files by what `fill` did with them. `edited`: newer in this version, but the instructor changed it."""

    created: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    edited: list[str] = field(default_factory=list)


def init(
    dest: Path, course_id: str = "gpu-course", exchange: Path | None = None, *, upgrade: bool = False
) -> InitResult:
    """Create the course folder `dest` with settings and the notebooks with their solutions, and the exchange.

    The exchange is open to all users; by default it is next to the course folder. The course folder has solutions and
    grades in it and is closed to other users, unless it was a course before. A second call adds missing files only.
    With `upgrade` it also replaces those files by this version's that nobody edited, and names the edited ones.

    Raises:
        ClassroomError: nbgrader cannot work with these names or folders.
    """
    dest = dest.expanduser().absolute()
    exchange = Path(exchange).expanduser().absolute() if exchange else dest.with_name(f"{dest.name}-exchange")
    _refuse(dest, exchange, course_id)
    try:
        warnings = _close(dest)
        filled = _fill(dest, settings.config_text(course_id, exchange), upgrade)
        config = settings.load(dest)  # an existing course keeps its own names
        exchange = Path(str(config.Exchange.root))
        warnings += _open_exchange(exchange)
        course_folder.api(dest)  # creates the gradebook, so that nbgrader's own commands find it
    except OSError as error:
        raise ClassroomError(f"{error.filename or dest} cannot be written: {error.strerror}.") from None
    if config.CourseDirectory.course_id != course_id and settings.CONFIG_FILE in filled.kept:
        warnings.append(f"the course keeps its id in {settings.CONFIG_FILE}, {config.CourseDirectory.course_id}")
    return InitResult(
        course=str(dest),
        course_id=str(config.CourseDirectory.course_id),
        exchange=str(exchange),
        warnings=tuple(warnings),
        **{done: tuple(names) for done, names in vars(filled).items()},
    )


def _refuse(dest: Path, exchange: Path, course_id: str) -> None:
    if not _COURSE_ID.fullmatch(course_id):
        raise ClassroomError(
            f"{course_id!r} cannot be a course id: use letters, digits, `-`, `_` and `.`, and start with a letter or "
            "a digit."
        )
    for path in (dest, exchange):
        if re.search(r"[][*?]", str(path)):
            raise ClassroomError(f"nbgrader cannot work in {path}: it reads `[`, `]`, `*` and `?` as patterns.")
        if path.exists() and not path.is_dir():
            raise ClassroomError(f"{path} is a file; name a folder.")
    if settings.is_exchange(dest):
        raise ClassroomError(f"{dest} is an exchange, open to all learners: name another folder for the course.")
    if dest == Path.home():
        raise ClassroomError(f"{dest} is your home folder: name another one, such as {dest}/gpu-course.")
    if exchange == dest or dest in exchange.parents or exchange in dest.parents:
        raise ClassroomError(
            f"The exchange ({exchange}) is open to all learners and the course folder ({dest}) has the solutions: "
            "neither can be inside the other."
        )


def _close(dest: Path) -> list[str]:
    """Close a new course folder to other users. If they can read an existing course, only warn."""
    was_there = dest.exists()
    if was_there and not dest.stat().st_mode & 0o077:
        return []
    if was_there and (dest / settings.CONFIG_FILE).exists():
        remedy = f"`chmod 700 {shlex.quote(str(dest))}` closes it"
        return [f"other users may be able to read {dest}, with its solutions and grades; {remedy}"]
    dest.mkdir(parents=True, exist_ok=True)
    dest.chmod(0o700)
    return [f"{dest} is now closed to other users, because it has solutions and grades in it"] if was_there else []


def _fill(dest: Path, config: str, upgrade: bool) -> Filled:
    from grader.authoring import build

    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch) / "course"
        (made / "source").mkdir(parents=True)
        there = dest / settings.CONFIG_FILE
        (made / settings.CONFIG_FILE).write_text(
            there.read_text(encoding="utf-8") if upgrade and there.exists() else config, encoding="utf-8"
        )
        build.instructor_notebooks(made / "source")
        return _copy(dest, made, upgrade)


def _copy(dest: Path, made: Path, upgrade: bool) -> Filled:
    """Copy missing files from `made` into the course folder and, with `upgrade`, newer ones over unedited ones."""
    record, done = _record(dest), Filled()
    for path in sorted(path for path in made.rglob("*") if path.is_file()):
        name, target = path.relative_to(made).as_posix(), dest / path.relative_to(made)
        new = contents(path)
        if target.exists():
            old = contents(target)
            if old == new:
                record[name] = new  # so a later version may replace it
            if old == new or not upgrade or record.get(name) != old:
                done.kept.append(name)
                done.edited += [name] * (upgrade and old != new and record.get(name) != new)
                continue
            done.updated.append(name)
        else:
            done.created.append(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = target.with_name(f".{target.name}.new")
        shutil.copyfile(path, scratch)
        if target.exists():
            shutil.copymode(target, scratch)  # a group may share the course
        scratch.replace(target)
        record[name] = new
    write_in_one_step(dest / RECORD, json.dumps(record, indent=1, sort_keys=True))
    return done


def contents(path: Path) -> str:
    """A hash of a file; of a notebook, only the types, texts and nbgrader's marks of its cells, not its outputs."""
    data = path.read_bytes()
    if path.suffix == ".ipynb":
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):  # the instructor's own file
            data = json.dumps([_cell(cell) for cell in json.loads(data)["cells"]], sort_keys=True).encode()
    return hashlib.sha256(data).hexdigest()


def _cell(cell: dict[str, Any]) -> tuple[str, str, Any]:
    return cell["cell_type"], "".join(cell["source"]), cell["metadata"].get("nbgrader")


def _record(dest: Path) -> dict[str, str]:
    try:
        return dict(json.loads((dest / RECORD).read_bytes()))
    except (OSError, ValueError, TypeError):
        return {}


def _open_exchange(exchange: Path) -> list[str]:
    if not exchange.exists():
        exchange.mkdir(parents=True)
        exchange.chmod(_EXCHANGE_MODE)
    if not os.access(exchange, os.W_OK | os.X_OK):
        raise ClassroomError(f"You cannot write to the exchange {exchange}: name another one with --exchange.")
    closed = [folder for folder in exchange.parents if not folder.stat().st_mode & stat.S_IXOTH]
    if exchange.stat().st_mode & 0o777 != 0o777:
        closed.append(exchange)
    if not closed:
        return []
    return [
        f"{closed[-1]} is closed to other users of this machine, so only you can use the exchange; "
        "for a class, use --exchange to name one that all can reach, such as /srv/nbgrader/exchange"
    ]
