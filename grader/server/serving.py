"""`grader classroom serve` and `token`: the web server, the process that judges, and the course's tokens."""

from __future__ import annotations

import contextlib
import csv
import fcntl
import io
import ipaddress
import multiprocessing
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.classroom import course_folder as folder
from grader.classroom import settings as course_settings
from grader.classroom.answers import Result
from grader.classroom.grading.verdict_store import exercise_version
from grader.errors import ClassroomError, MachineLacks
from grader.exercises import EXERCISES, found
from grader.server.job_queue import JobQueue, Limits
from grader.server.judge_loop import LiveBoard, Settings, judge_process
from grader.server.tokens import course_tokens
from grader.words import plural

FOLDER = "server"  # in the course folder
_QUEUE, _SITE = "queue.sqlite", "site"
_RESTART_S = 1.0


@dataclass(frozen=True)
class Address:
    """Where the server listens. Without a certificate it is HTTP, on this machine only."""

    host: str = "127.0.0.1"
    port: int = 8443
    certificate: Path | None = None
    key: Path | None = None

    def check(self) -> None:
        """Refuse to let tokens travel in clear text, and files that are missing.

        Raises:
            ClassroomError: other machines could read the tokens, or a file of the certificate is missing.
        """
        for file in filter(None, (self.certificate, self.key)):
            if not file.is_file():
                raise ClassroomError(f"There is no file {file}.")
        if self.certificate is None and not _is_loopback(self.host):
            raise ClassroomError(
                f"At {self.host}, other machines could read the learners' tokens: give --certificate and --key, or "
                "listen on 127.0.0.1 behind a web server that does TLS."
            )


def serve(settings: Settings, address: Address, limits: Limits, ready: Callable[[str], None] = print) -> None:
    """Serve a course until the process is interrupted. `ready` gets a line once learners can submit.

    Raises:
        ClassroomError: it is not a course folder, another server serves it, or the address cannot be used.
        GraderError: the leaderboard's store cannot be used.
        MachineLacks: Starlette and uvicorn are not installed, or there is no sandbox, but `settings` ask for one.
    """
    with opened(settings, address, limits) as server, judging(settings):
        thread = threading.Thread(target=_tell_when_started, args=(server, address, ready), daemon=True)
        thread.start()
        server.run()


@contextlib.contextmanager
def opened(settings: Settings, address: Address, limits: Limits) -> Iterator[Any]:
    """The web server (`uvicorn.Server`) of a course, which the caller runs."""
    try:
        from grader.server import web
    except ImportError:
        raise MachineLacks("The server needs Starlette and uvicorn: pip install 'grader[serve]'.") from None
    from grader.judge.sandbox import must_be_caged

    address.check()
    if settings.sandbox:
        must_be_caged()
    place = _place(settings.course)
    found.use(settings.course)
    (place / _SITE).mkdir(exist_ok=True)
    with _only_one(place), contextlib.closing(JobQueue(place / _QUEUE)) as queue:
        LiveBoard(settings.course, place / _SITE).store.close()  # so that there are pages, and a broken store is named
        app = web.application(queue, course_tokens(place), place / _SITE, limits, exercise_versions())
        yield web.server(app, address.host, address.port, address.certificate, address.key)


def exercise_versions() -> dict[str, str]:
    """The version of each exercise: computing them takes too long for the first request.

    Raises:
        UnusableExercise: one of the course's own exercises cannot be used.
    """
    return {exercise: exercise_version(exercise) or "" for exercise in EXERCISES}


@contextlib.contextmanager
def judging(settings: Settings) -> Iterator[None]:
    """Keep a process that judges; one that dies is replaced, and its job judged again."""
    place = _place(settings.course)
    spawn = multiprocessing.get_context("spawn")
    ending = threading.Event()

    def keep() -> None:
        while not ending.is_set():
            arguments = (settings, place / _QUEUE, place / _SITE)
            process = spawn.Process(target=judge_process, args=arguments, daemon=True)
            try:
                process.start()
            except OSError:  # out of memory or of open files, for the moment
                ending.wait(_RESTART_S)
                continue
            while process.is_alive() and not ending.wait(0.2):
                process.join(timeout=0)
            process.terminate()
            process.join()
            ending.wait(_RESTART_S)

    keeper = threading.Thread(target=keep, daemon=True)
    keeper.start()
    try:
        yield
    finally:
        ending.set()
        keeper.join()


@dataclass(frozen=True)
class TokenResult(Result):
    """The tokens that were made, by student, or how many were `written` to a file; or whose were revoked."""

    tokens: dict[str, str]
    revoked: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    file: str = ""
    written: int = 0

    def to_text(self) -> str:
        lines = [f"{student} {token}" for student, token in self.tokens.items()]
        lines += [f"{plural(self.written, 'token')} in {self.file}."] if self.file else []
        lines += [f"The tokens of {student} are revoked." for student in self.revoked]
        return "\n".join([*lines, *(f"Note: {warning}" for warning in self.warnings)])

    def to_csv(self) -> str:
        """A table with a header, for a mail merge."""
        table = io.StringIO()
        csv.writer(table).writerows([("student", "token"), *self.tokens.items()])
        return table.getvalue()


def tokens(
    course: Path, students: Sequence[str], *, everybody: bool = False, days: float = 180.0, revoke: bool = False
) -> TokenResult:
    """Make tokens for students, or for `everybody` in the gradebook. `revoke`: make none, and void the earlier ones.

    Raises:
        ClassroomError: it is not a course folder, a name cannot be a student's, or nobody is named.
    """
    api = folder.api(course)
    with api.gradebook as gradebook:
        known = sorted(student.id for student in gradebook.students)
    names = list(dict.fromkeys([*students, *(known if everybody else ())]))
    if not names:
        raise ClassroomError("Name a student, or use --all after `grader classroom roster` has imported the class.")
    place = _place(course)
    maker = course_tokens(place)
    made = {student: maker.make(student, days) for student in names}  # also checks the names
    if revoke:
        for student in names:
            maker.revoke(student)
        return TokenResult({}, tuple(names))
    strangers = [name for name in names if name not in known]
    warnings = (f"{folder.first_names(strangers)}: not in the gradebook yet",) if strangers else ()
    return TokenResult(made, (), warnings)


def _place(course: Path) -> Path:
    """The server's own folder in a course folder, closed to other users."""
    root = Path(course).expanduser().absolute()
    if not (root / course_settings.CONFIG_FILE).is_file():
        course_settings.load(root)  # says what is wrong
    place = root / FOLDER
    place.mkdir(mode=0o700, exist_ok=True)
    return place


@contextlib.contextmanager
def _only_one(place: Path) -> Iterator[None]:
    with (place / "server.lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ClassroomError(f"Another server serves {place.parent} already.") from None
        yield


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _tell_when_started(server: Any, address: Address, ready: Callable[[str], None]) -> None:
    waiting = threading.Event()
    while not server.started:
        if server.should_exit:
            return
        waiting.wait(0.05)
    port = server.servers[0].sockets[0].getsockname()[1]
    scheme = "https" if address.certificate is not None else "http"
    ready(f"Serving on {scheme}://{address.host}:{port}")
