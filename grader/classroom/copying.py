"""Copy files out of a submission folder, which another user may change meanwhile, and clear graded folders."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Collection
from pathlib import Path

from grader.errors import UnusableSubmission

TIMESTAMP = "timestamp.txt"
SECRET = "submission_secret.txt"  # nbgrader names a learner's feedback in the exchange after it
_CHUNK = 1 << 20


def copy_submission(
    source: Path, dest: Path, timestamp: str, wanted: Collection[str], most_bytes: int,
    is_as_found: Callable[[], bool] = lambda: True,
) -> list[str]:  # fmt: skip
    """Replace `dest` by a copy of the `wanted` files of `source`; return the sorted names of the other files.

    `timestamp` is written to `timestamp.txt`. `is_as_found` is called after copying: whether `source` is unchanged.

    The owner of `source` can read less than we can, and may change it meanwhile. So no link is followed and every file
    must belong to the folder's owner. Otherwise a link to the solutions would be graded as a submission.

    Raises:
        UnusableSubmission: a wanted file is not a regular file of the owner's, or there is too much. `dest` is kept.
        OSError: it could not be read or written. `dest` is kept.
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
            raise UnusableSubmission("it changed while it was copied; the next run collects it.")
        (scratch / TIMESTAMP).write_text(timestamp, encoding="utf-8")
        if dest.is_dir():
            shutil.rmtree(dest)
        scratch.rename(dest)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return sorted(there - {*wanted, TIMESTAMP})


def remove_all_but(folder: Path, kept: Collection[str]) -> None:
    """Remove everything from a folder except regular files whose relative names are in `kept`."""
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
    """Copy one file of at most `left` bytes and return its size."""
    if not stat.S_ISREG(os.stat(name, dir_fd=here, follow_symlinks=False).st_mode):
        raise _refused(name)
    done = 0
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY  # by now it may be a pipe without a writer
    with open(name, "rb", opener=lambda path, _: os.open(path, flags, dir_fd=here)) as source:
        status = os.fstat(source.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_uid != owner:
            raise _refused(name)
        with dest.open("wb") as target:
            while data := source.read(_CHUNK):
                done += len(data)
                if done > left:
                    raise UnusableSubmission(
                        "it is too large: ask the student to clear the outputs, save, and submit again."
                    )
                target.write(data)
    return done


def _refused(name: str) -> UnusableSubmission:
    return UnusableSubmission(f"{name!r} in it is a link, or belongs to another user.")
