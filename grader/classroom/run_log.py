"""A log of each long command, in `logs/` of the course folder, where only one of them runs at a time."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TextIO

from grader.errors import ClassroomError
from grader.verdict import Progress
from grader.words import on_one_line

FOLDER = "logs"


class RunLog:
    """Writes each step with its time, as soon as it begins, and passes it on."""

    def __init__(self, file: TextIO, progress: Progress | None) -> None:
        self._file, self._progress = file, progress

    def __call__(self, text: str, done: int, total: int) -> None:
        """Report a step: how many are done, out of how many."""
        self.write(f"{text} ({done}/{total})")
        if self._progress is not None:
            self._progress(text, done, total)

    def write(self, text: str) -> None:
        """Write a line that is not reported elsewhere."""
        line = on_one_line(text).encode("utf-8", "replace").decode()
        self._file.write(f"{datetime.now().astimezone().isoformat(timespec='seconds')} {line}\n")
        self._file.flush()


_held: set[Path] = set()  # the locks that this process holds for commands of its own


@contextlib.contextmanager
def alone(course: Path, *, wait: bool = False) -> Iterator[None]:
    """The lock of a course's long commands, which ends with the process. File systems without locks have none.

    `wait`: until another command ends; then this process may run such commands itself.

    Raises:
        ClassroomError: another long command runs in the course folder.
    """
    folder = (Path(course) / FOLDER).resolve()
    if folder in _held:
        yield
        return
    folder.mkdir(exist_ok=True)
    with (folder / ".lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise ClassroomError(
                f"Another command grades or rescores in {folder.parent}: wait until it ends; its log is in {folder}."
            ) from None
        except OSError:
            pass
        if wait:
            _held.add(folder)
        try:
            yield
        finally:
            _held.discard(folder)


@contextlib.contextmanager
def run_log(course: Path, command: str, progress: Progress | None) -> Iterator[RunLog]:
    """A new log `<course>/logs/<time>-<command>.log`, which also says why a run ended early.

    Raises:
        ClassroomError: another long command runs in the course folder.
    """
    folder = Path(course) / FOLDER
    name = f"{datetime.now().astimezone():%Y-%m-%dT%H-%M-%S-%f}-{command}.log"
    with alone(course), (folder / name).open("x", encoding="utf-8") as file:
        log = RunLog(file, progress)
        log.write(f"{command} began")
        try:
            yield log
        except BaseException as error:
            log.write(": ".join(filter(None, ["stopped", type(error).__name__, str(error)])))
            raise
        log.write(f"{command} ended")
