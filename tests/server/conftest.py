"""A class's web server on a free port of the loopback interface, without a course and without a judge."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from grader.classroom import settings
from grader.server import web
from grader.server.job_queue import JobQueue, Limits
from grader.server.tokens import Tokens, write_key
from tests.classroom.conftest import classroom, home, judge, new_course, quick_gradebooks

__all__ = ["classroom", "home", "judge", "new_course", "quick_gradebooks"]

SOURCE = "def softmax(x, out):\n    pass\n"


def bare_course(tmp_path: Path) -> Path:
    """A course folder without notebooks."""
    course = tmp_path / "course"
    course.mkdir()
    text = settings.config_text("gpu-course", tmp_path / "exchange")
    (course / settings.CONFIG_FILE).write_text(text, encoding="utf-8")
    return course


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Running:
    """A running server, its queue, its clock and the folder of its pages."""

    port: int
    queue: JobQueue
    tokens: Tokens
    clock: Clock
    site: Path

    def ask(
        self, method: str, path: str, body: Any = None, student: str | None = None, token: str = "", **headers: str
    ) -> tuple[int, Any, Any]:
        """The status, the headers and the body of an answer, parsed if it is JSON."""
        token = self.tokens.make(student, 1) if student is not None else token
        given = {"Authorization": f"Bearer {token}"} if token else {}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, body, given | headers)
            answer = connection.getresponse()
            data = answer.read()
        is_json = answer.headers.get("content-type") == "application/json"
        return answer.status, answer.headers, json.loads(data) if is_json else data


@contextlib.contextmanager
def in_background(server: uvicorn.Server) -> Iterator[int]:
    """Run a web server in a thread; the value is its port."""
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    waiting = threading.Event()
    while not server.started:
        assert thread.is_alive()
        waiting.wait(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def queue(tmp_path: Path, clock: Clock) -> Iterator[JobQueue]:
    with contextlib.closing(JobQueue(tmp_path / "queue.sqlite", clock)) as made:
        yield made


@pytest.fixture
def running(tmp_path: Path, queue: JobQueue, clock: Clock) -> Iterator[Running]:
    """A server that takes three submissions per hour, two of them waiting."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.html").write_text("<p>the board</p>", encoding="utf-8")
    write_key(tmp_path / "token.key")
    tokens = Tokens(tmp_path / "token.key", clock)
    app = web.application(queue, tokens, site, Limits(per_hour=3, waiting=2), {"softmax": "1"})
    with in_background(web.server(app, "127.0.0.1", 0)) as port:
        yield Running(port, queue, tokens, clock, site)


@pytest.fixture
def send(running: Running) -> Callable[..., tuple[int, Any, Any]]:
    """Submit a text for softmax in a student's name."""

    def submit(student: str, source: Any = SOURCE, exercise: str = "softmax", **more: Any) -> tuple[int, Any, Any]:
        return running.ask("POST", f"/submissions/{exercise}", source, student, **more)

    return submit
