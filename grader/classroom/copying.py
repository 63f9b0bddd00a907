"""Copy from a folder that a stranger made: the files that are wanted, of one user's, all of them or none."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Collection
from pathlib import Path

from grader.errors import UnusableSubmission

TIMESTAMP = "timestamp.txt"
SECRET = "submission_secret.txt"  # nbgrader's, by which a learner finds feedback in the exchange
_CHUNK = 1 << 20


def copy_submission(
    source: Path,
    dest: Path,
    timestamp: str,
    wanted: Collection[str],
    most_bytes: int,
    is_as_found: Callable[[], bool] = lambda: True,
) -> list[str]:
    """Make `dest` a copy of the `wanted` files of `source`, with `timestamp` in its `timestamp.txt`; what was at `dest`
    goes. Return the names of what was left, sorted.

    `is_as_found`: asked when all is copied, whether that is what `timestamp` was said of.

    Whoever made `source` can read less than we can, and may change it meanwhile. So no link is followed, and every file
    must be of the user's whose folder it is: else a link to the solutions would be graded as a submission.

    Raises:
        UnusableSubmission: a wanted file is something else, or there is too much. `dest` is as it was.
        OSError: it could not be read or written. `dest` is as it was.
    """
    scratch = dest.with_name(f".{dest.name}.collecting")
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        top = os.open(source, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            there, owner = set(os.listdir(top)), os.fstat(top).st_uid
            scratch.mkdir()
            for name in sorted(there.intersection(wanted)):
                most_bytes -= _copy_file(name, top, scratch / name, owner, most_bytes)
        finally:
            os.close(top)
        if not is_as_found():
            raise UnusableSubmission("it was changed meanwhile; the next run collects it.")
        (scratch / TIMESTAMP).write_text(timestamp, encoding="utf-8")
        if dest.is_dir():
            shutil.rmtree(dest)
        scratch.rename(dest)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return sorted(there - {*wanted, TIMESTAMP})


def remove_all_but(folder: Path, kept: Collection[str]) -> None:
    """Remove everything from a folder but the plain files of these names, which are relative to it."""
    with os.scandir(folder) as entries:
        for entry in list(entries):
            if not entry.is_dir(follow_symlinks=False):
                if entry.name not in kept or not entry.is_file(follow_symlinks=False):
                    os.unlink(entry.path)
            elif inner := {name.partition("/")[2] for name in kept if name.startswith(f"{entry.name}/")}:
                remove_all_but(Path(entry.path), inner)
            else:
                shutil.rmtree(entry.path)


def _copy_file(name: str, here: int, dest: Path, owner: int, left: int) -> int:
    """Copies one file of at most `left` bytes; returns how many it has."""
    if not stat.S_ISREG(os.stat(name, dir_fd=here, follow_symlinks=False).st_mode):
        raise _refused(name)
    done = 0
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY  # it may be a pipe by now, that nobody writes to
    with open(name, "rb", opener=lambda path, _: os.open(path, flags, dir_fd=here)) as source:
        status = os.fstat(source.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_uid != owner:
            raise _refused(name)
        with dest.open("wb") as target:
            while data := source.read(_CHUNK):
                done += len(data)
                if done > left:
                    raise UnusableSubmission("it is too large.")
                target.write(data)
    return done


def _refused(name: str) -> UnusableSubmission:
    return UnusableSubmission(f"{name!r} in it is a link, or another's file.")
