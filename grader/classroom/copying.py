"""Copy a folder that a stranger made: plain files of one user's, whole or not at all."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Collection
from pathlib import Path

from grader.errors import UnusableSubmission

__all__ = ["copy_submission"]

_MOST_FILES = 200  # and folders
_DEEPEST = 20  # folders within each other
_CHUNK = 1 << 20

Ignored = Callable[[str, list[str]], Collection[str]]  # as `shutil.ignore_patterns` gives it


def copy_submission(
    source: Path,
    dest: Path,
    timestamp: str,
    ignored: Ignored,
    most_bytes: int,
    is_as_found: Callable[[], bool] = lambda: True,
) -> None:
    """Make `dest` a copy of `source`, with `timestamp` in its `timestamp.txt`; what was at `dest` goes.

    `is_as_found`: asked when all is copied, whether that is what `timestamp` was said of.

    Whoever made `source` can read less than we can, and may change it meanwhile. So no link is followed, and every file
    must be of the user's whose folder it is: else a link to the solutions would be graded as a submission.

    Raises:
        UnusableSubmission: there is something else in it, or too much. `dest` is as it was.
        OSError: it could not be read or written. `dest` is as it was.
    """
    scratch = dest.with_name(f".{dest.name}.collecting")
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        top = os.open(source, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            _copy(top, scratch, ignored, most_bytes)
        finally:
            os.close(top)
        if not is_as_found():
            raise UnusableSubmission("it was changed meanwhile; the next run collects it.")
        (scratch / "timestamp.txt").write_text(timestamp, encoding="utf-8")
        if dest.is_dir():
            shutil.rmtree(dest)
        scratch.rename(dest)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _copy(top: int, dest: Path, ignored: Ignored, most_bytes: int) -> None:
    owner = os.fstat(top).st_uid
    count, left = 0, most_bytes
    for path, folders, files, here in os.fwalk(".", onerror=_raise, follow_symlinks=False, dir_fd=top):
        unwanted = ignored(path, [*folders, *files])
        folders[:] = [name for name in folders if name not in unwanted]
        count += len(folders) + len(files)
        if count > _MOST_FILES or path.count(os.sep) > _DEEPEST:
            raise UnusableSubmission(f"it holds more than {_MOST_FILES} files, or folders too deep in each other.")
        for name in folders:
            if not stat.S_ISDIR(os.stat(name, dir_fd=here, follow_symlinks=False).st_mode):
                raise _refused(name)
        (dest / path).mkdir(parents=True)
        for name in sorted(set(files).difference(unwanted)):
            left -= _copy_file(name, here, dest / path / name, owner, left)


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


def _raise(error: OSError) -> None:
    raise error
