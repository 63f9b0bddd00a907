"""Tests of grader.server.submitting and `grader submit`: what a learner sees, and where the token never goes."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from grader.cli import app
from grader.errors import GraderError
from grader.server.job_queue import Answer
from grader.server.submitting import ClassServer, token_of
from grader.submission import from_source
from tests.server.conftest import SOURCE, Running


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A solution of softmax."""
    path = tmp_path / "softmax.py"
    path.write_text(SOURCE, encoding="utf-8")
    return path


def submit(running: Running, *arguments: object) -> Any:
    given = ["submit", *map(str, arguments), "--to", f"http://127.0.0.1:{running.port}"]
    return CliRunner(env={"GRADER_TOKEN": running.tokens.make("ann", 1)}).invoke(app, given)


@pytest.mark.parametrize(("status", "code"), [("passed", 0), ("failed", 1), ("unusable", 2), ("not_judged", 3)])
def test_the_report_is_printed_and_the_exit_status_says_the_outcome(
    running: Running, file: Path, status: str, code: int
) -> None:
    """Escape sequences in it reach no terminal."""
    assert submit(running, file, "--no-wait").exit_code == 0
    job = running.queue.claim()
    assert job is not None
    running.queue.finish(job.key, Answer(status, 4, 10, "4 of 10 points \x1b[2J"))
    done = submit(running, file)
    assert (done.exit_code, done.output) == (code, "4 of 10 points ?[2J\n")


def test_the_place_is_shown_while_it_waits(running: Running, file: Path) -> None:
    """In text and in JSON."""
    assert submit(running, file, "--no-wait").output == "softmax: accepted, place 1 in the queue.\n"
    assert json.loads(submit(running, file, "--no-wait", "--json").output)["place"] == 1


def test_waiting_follows_the_queue(running: Running) -> None:
    """From its place through the judging to the verdict."""

    def judge(_: float) -> None:
        if (job := running.queue.claim()) is None:
            (mine,) = running.queue.recent("ann")
            running.queue.finish(mine.key, Answer("passed", 10, 10, "well done"))
        else:
            assert job.student == "ann"

    said: list[str] = []
    server = ClassServer(f"http://127.0.0.1:{running.port}", running.tokens.make("ann", 1), sleep=judge)
    outcome = server.submit(from_source(SOURCE, "softmax"))
    outcome = server.wait(outcome, lambda text, done, total: said.append(text))
    assert said == ["softmax: place 1 in the queue", "softmax: being judged"]
    assert (outcome.status, outcome.report) == ("passed", "well done")


def test_a_refusal_is_one_sentence(running: Running, file: Path) -> None:
    """With the time to wait, if there is one."""
    for number in range(2):
        running.ask("POST", "/submissions/softmax", f"x = {number}", "ann")
    done = submit(running, file)
    assert done.exit_code == 2
    assert done.stderr == (
        "You have 2 submissions waiting already: send this one after a verdict. You may try again in 10 s.\n"
    )


def test_a_server_that_restarts_is_waited_for(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pauses grow; a request that is sent twice is one submission."""
    pauses: list[float] = []
    server = ClassServer(f"http://127.0.0.1:{running.port}", running.tokens.make("ann", 1), sleep=pauses.append)
    ask, failures = server._ask, [ConnectionRefusedError("refused"), ConnectionResetError("reset"), TimeoutError()]

    def flaky(*arguments: Any) -> Any:
        answer = ask(*arguments)  # the answer gets lost
        if failures:
            raise failures.pop()
        return answer

    monkeypatch.setattr(server, "_ask", flaky)
    assert server.submit(from_source(SOURCE, "softmax")).place == 1
    assert pauses == [1, 2, 4]
    assert running.queue.waiting() == 1


def test_a_server_that_stays_away_is_given_up(free_port: int) -> None:
    """After some minutes."""
    pauses: list[float] = []
    server = ClassServer(f"http://127.0.0.1:{free_port}", "token", sleep=pauses.append)
    with pytest.raises(GraderError, match="cannot be reached"):
        server.submit(from_source(SOURCE, "softmax"))
    assert 300 <= sum(pauses) < 330


@pytest.mark.parametrize(
    "url", ["http://gpu.example.org", "http://127.0.0.1.example.org", "ftp://x", "gpu.example.org", "//x"]
)
def test_the_token_is_sent_to_no_insecure_address(url: str) -> None:
    """Only this machine may be asked without TLS."""
    with pytest.raises(GraderError, match=r"clear text|begins with https"):
        ClassServer(url, "token")


def test_no_proxy_reads_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine is asked directly, because that request is in clear text."""
    monkeypatch.setenv("http_proxy", "http://proxy.example.org:3128")
    server = ClassServer("http://127.0.0.1:1", "token")
    assert not any(isinstance(each, urllib.request.ProxyHandler) for each in server._opener.handlers)


@pytest.fixture
def elsewhere() -> Iterator[tuple[str, list[str]]]:
    """A server that redirects, and the tokens that reach it."""
    seen: list[str] = []

    class Redirecting(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers["authorization"])
            self.send_response(302)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        do_POST = do_GET

        def log_message(self, *_: Any) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Redirecting) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", seen
        server.shutdown()
        thread.join()


def test_no_redirect_is_followed(elsewhere: tuple[str, list[str]]) -> None:
    """It could lead the token to another server."""
    url, seen = elsewhere
    with pytest.raises(GraderError, match="status 302"):
        ClassServer(url, "secret").submit(from_source(SOURCE, "softmax"))
    assert seen == ["Bearer secret"]


def test_where_the_token_comes_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is named, or else the environment; never an argument, which other users can see."""
    monkeypatch.delenv("GRADER_TOKEN", raising=False)
    with pytest.raises(GraderError, match="Set GRADER_TOKEN"):
        token_of(None)
    monkeypatch.setenv("GRADER_TOKEN", "from the environment")
    assert token_of(None) == "from the environment"
    (tmp_path / "token").write_text("from a file\n", encoding="utf-8")
    assert token_of(tmp_path / "token") == "from a file"
    with pytest.raises(GraderError, match="cannot be read"):
        token_of(tmp_path / "none")
