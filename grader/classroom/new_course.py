"""Make a course folder that nbgrader works in, and an exchange on this machine; nothing that is there is touched."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
import tempfile
from pathlib import Path

from grader.classroom import course_folder, settings
from grader.classroom.answers import InitResult
from grader.errors import ClassroomError

_COURSE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_EXCHANGE_MODE = 0o1777  # all may write, as nbgrader needs; with the sticky bit, nobody may move what others own


def init(dest: Path, course_id: str = "gpu-course", exchange: Path | None = None) -> InitResult:
    """Make the course folder `dest`: settings, the notebooks with their solutions, and the exchange.

    The exchange is beside the folder unless another is named: the folder holds solutions and grades and is closed to
    other users, also where it was there before; the exchange is open to all. Files that exist are kept, so that a
    second call adds what is missing, and leaves the folder as open as it was made since.

    Raises:
        ClassroomError: the names or the places are such that nbgrader could not work there.
    """
    dest = Path(dest).expanduser().absolute()
    exchange = Path(exchange).expanduser().absolute() if exchange else dest.with_name(f"{dest.name}-exchange")
    _refuse(dest, exchange, course_id)
    try:
        warnings = _close(dest)
        created, kept = _fill(dest, settings.config_text(course_id, exchange))
        config = settings.load(dest)  # of a course that was there, its own names count
        exchange = Path(str(config.Exchange.root))
        warnings += _open_exchange(exchange)
        course_folder.api(dest)  # makes the gradebook, so that nbgrader's own commands find it
    except OSError as error:
        raise ClassroomError(f"{error.filename or dest} cannot be written: {error.strerror}.") from None
    if config.CourseDirectory.course_id != course_id and settings.CONFIG_FILE in kept:
        warnings.append(
            f"the course is called {config.CourseDirectory.course_id} in {settings.CONFIG_FILE}; that stays"
        )
    return InitResult(
        course=str(dest),
        course_id=str(config.CourseDirectory.course_id),
        exchange=str(exchange),
        created=tuple(created),
        kept=tuple(kept),
        warnings=tuple(warnings),
    )


def _refuse(dest: Path, exchange: Path, course_id: str) -> None:
    if not _COURSE_ID.fullmatch(course_id):
        raise ClassroomError(
            f"{course_id!r} cannot be a course id: it takes letters, digits, `-`, `_` and `.`, and starts with one of "
            "the first two."
        )
    for path in (dest, exchange):
        if re.search(r"[][*?]", str(path)):
            raise ClassroomError(f"nbgrader cannot work in {path}: it reads `[`, `]`, `*` and `?` as patterns.")
        if path.exists() and not path.is_dir():
            raise ClassroomError(f"{path} is a file; name a folder.")
    if settings.is_exchange(dest):
        raise ClassroomError(f"{dest} is an exchange, open to all learners: name another folder for the course.")
    if dest == Path.home():
        raise ClassroomError(f"{dest} is your home: name a folder of its own, such as {dest}/gpu-course.")
    if exchange == dest or dest in exchange.parents or exchange in dest.parents:
        raise ClassroomError(
            f"The exchange ({exchange}) is open to all learners and the course folder ({dest}) holds the solutions: "
            "neither can lie in the other."
        )


def _close(dest: Path) -> list[str]:
    """Keep other users out of a folder that becomes a course; of one that is, only say that they can look into it."""
    was_there = dest.exists()
    if was_there and not dest.stat().st_mode & 0o077:
        return []
    if was_there and (dest / settings.CONFIG_FILE).exists():
        remedy = f"`chmod 700 {shlex.quote(str(dest))}` closes it"
        return [f"other users may be able to read {dest}, with its solutions and grades; {remedy}"]
    dest.mkdir(parents=True, exist_ok=True)
    dest.chmod(0o700)
    return [f"{dest} is closed to other users now, as it holds solutions and grades"] if was_there else []


def _fill(dest: Path, config: str) -> tuple[list[str], list[str]]:
    from grader.authoring import build

    created, kept = [], []
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch) / "course"
        (made / "source").mkdir(parents=True)
        (made / settings.CONFIG_FILE).write_text(config, encoding="utf-8")
        build.instructor_notebooks(made / "source")
        for path in sorted(path for path in made.rglob("*") if path.is_file()):
            name = path.relative_to(made).as_posix()
            target = dest / name
            if target.exists():
                kept.append(name)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
            created.append(name)
    return created, kept


def _open_exchange(exchange: Path) -> list[str]:
    if not exchange.exists():
        exchange.mkdir(parents=True)
        exchange.chmod(_EXCHANGE_MODE)
    if not os.access(exchange, os.W_OK | os.X_OK):
        raise ClassroomError(f"The exchange {exchange} cannot be written by you: name another with --exchange.")
    closed = [folder for folder in exchange.parents if not folder.stat().st_mode & stat.S_IXOTH]
    if stat.S_IMODE(exchange.stat().st_mode) & 0o777 != 0o777:
        closed.append(exchange)
    if not closed:
        return []
    return [
        f"{closed[-1]} is closed to other users of this machine, so only you can use the exchange; "
        + "for a class, name one that all can reach with --exchange, such as /srv/nbgrader/exchange"
    ]
