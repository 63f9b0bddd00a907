"""Tests of grader.server.web: what a hostile client gets is a clear no, and nobody sees another's work."""

from __future__ import annotations

import contextlib
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from grader.exercise import MAX_SOURCE_BYTES
from grader.server import web
from grader.server.job_queue import Answer, JobQueue
from grader.server.tokens import Tokens, write_key
from tests.server.conftest import SOURCE, Running

Send = Callable[..., tuple[int, Any, Any]]


def raw(port: int, data: bytes) -> bytes:
    """Send these bytes, and return the answers until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(data)
        found = b""
        while chunk := connection.recv(65_536):
            found += chunk
    return found


def test_a_submission_waits_and_then_has_a_verdict(running: Running, send: Send) -> None:
    """The learner sees its place and, once it is judged, the report."""
    send("bob")
    status, _, job = send("ann")
    assert (status, job["state"], job["place"]) == (202, "waiting", 2)
    claimed = [running.queue.claim(), running.queue.claim()]
    assert claimed[1] is not None
    running.queue.finish(claimed[1].key, Answer("passed", 10, 10, "well done"))
    status, _, found = running.ask("GET", f"/submissions/{job['id']}", student="ann")
    assert (status, found["state"], found["report"]) == (200, "done", "well done")
    assert [each["id"] for each in running.ask("GET", "/submissions", student="ann")[2]] == [job["id"]]


def test_a_replayed_request_is_the_same_job(running: Running, send: Send) -> None:
    """It is judged once, and costs no attempt."""
    first = send("ann")[2]
    for _ in range(5):
        status, _, again = send("ann")
        assert (status, again["id"]) == (200, first["id"])
    assert running.queue.waiting() == 1


@pytest.mark.parametrize("path", ["/submissions/ID", "/submissions"])
def test_without_a_valid_token_there_is_nothing(running: Running, send: Send, path: str) -> None:
    """None, nonsense, another course's, one that has ended and one that was revoked."""
    path = path.replace("ID", send("ann")[2]["id"])
    ended, revoked = running.tokens.make("ann", 1), running.tokens.make("bob", 9)
    running.tokens.revoke("bob")
    running.clock.now += 86_400
    write_key(other_key := running.site.with_name("other.key"))
    other = Tokens(other_key, running.clock)
    for token in ("", "nonsense", "a.b", other.make("ann", 1), ended, revoked):
        status, headers, answer = running.ask("GET", path, token=token)
        assert (status, headers["www-authenticate"]) == (401, "Bearer")
        assert answer == {"error": "This needs a valid token: ask your instructor for a new one."}
    assert running.ask("POST", "/submissions/softmax", SOURCE)[0] == 401


def test_someone_elses_token_shows_nothing_of_mine(running: Running, send: Send) -> None:
    """The id of another student's job leads nowhere."""
    job = send("ann")[2]
    assert running.ask("GET", f"/submissions/{job['id']}", student="bob")[0] == 404
    assert running.ask("GET", f"/submissions/{'0' * 32}", student="bob")[0] == 404
    assert running.ask("GET", "/submissions", student="bob")[2] == []


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"x" * (MAX_SOURCE_BYTES + 1), 413, "at most 64 kB"),
        (b"", 422, "is empty"),
        (b"\xff\xfe", 422, "not text in UTF-8"),
        (b"x = '\0'", 422, "NUL character"),
        (b"%time softmax(x, out)", 422, "IPython magic"),
        (("é" * MAX_SOURCE_BYTES).encode(), 413, "at most 64 kB"),
    ],
    ids=("too large", "empty", "not UTF-8", "NUL", "magic", "too many bytes"),
)
def test_a_body_that_cannot_be_a_solution(running: Running, send: Send, body: bytes, status: int, said: str) -> None:
    """The sentence says why."""
    found, _, answer = send("ann", body)
    assert found == status
    assert said in answer["error"]
    assert running.queue.recent("ann") == []


def test_a_body_without_an_announced_length_ends_at_the_limit(running: Running, send: Send) -> None:
    """The rest is not read."""
    pieces = (b"x" * 8192 for _ in range(1000))
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it closed while the client was sending
        assert send("ann", pieces)[0] == 413
    assert running.queue.recent("ann") == []


def test_an_unknown_exercise_and_page(running: Running, send: Send) -> None:
    """Both are 404, in words."""
    assert send("ann", exercise="nonsense")[0] == 404
    status, _, answer = running.ask("GET", "/nonsense.html")
    assert (status, answer) == (404, {"error": "There is no such page."})
    assert running.ask("POST", "/index.html", "x")[0] == 405


def test_too_many_are_refused_with_the_time_to_wait(running: Running, send: Send) -> None:
    """Two may wait, and three be sent per hour."""
    assert [send("ann", f"x = {number}")[0] for number in range(3)] == [202, 202, 429]
    running.queue.claim()
    assert send("ann", "x = 2")[0] == 202
    running.queue.claim()
    status, headers, answer = send("ann", "x = 3")
    assert (status, headers["retry-after"]) == (429, "3600")
    assert answer["error"] == "You have sent 3 submissions within an hour, the most that this class allows."


_NOT_HTTP = {
    "words": b"nonsense\r\n\r\n",
    "version": b"GET / HTTP/99\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00",
    "length": b"POST /submissions/softmax HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    "long header": b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 1_000_000,
}


@pytest.mark.parametrize("data", _NOT_HTTP.values(), ids=_NOT_HTTP)
def test_what_is_not_http_gets_400(running: Running, data: bytes) -> None:
    """And the server answers the next request."""
    try:
        answer = raw(running.port, data + b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 400")
        assert b"Traceback" not in answer
    except (BrokenPipeError, ConnectionResetError):  # it closed while the client was sending
        pass
    assert running.ask("GET", "/")[0] == 200


def test_a_slow_body_is_cut_off(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client gets an answer, and the connection is closed."""
    monkeypatch.setattr(web, "_BODY_S", 0.1)
    token = running.tokens.make("ann", 1)
    head = (
        f"POST /submissions/softmax HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Length: 99\r\n\r\n"
    )
    answer = raw(running.port, head.encode() + b"def")
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"did not arrive within" in answer


@pytest.mark.parametrize("data", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET"])
def test_a_connection_without_a_request_is_closed(
    running: Running, monkeypatch: pytest.MonkeyPatch, data: bytes
) -> None:
    """Also after a first, complete request: nobody can hold connections open."""
    monkeypatch.setattr(web, "_CONNECTION_S", 2.0 if data.endswith(b"\nGET") else 0.1)
    assert raw(running.port, data).startswith(b"HTTP/1.1 200" if data.endswith(b"\nGET") else b"")


@contextlib.contextmanager
def idle(port: int, number: int) -> Iterator[list[socket.socket]]:
    """Connections without a request, the first of them accepted."""
    with contextlib.ExitStack() as opened:
        yield [opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60)) for _ in range(number)]


def test_one_client_cannot_hold_all_connections(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads why; with many more connections it is cut off, and a client elsewhere is served."""
    clients = iter([*["10.0.0.1"] * 8, "10.0.0.2"])
    monkeypatch.setattr(web, "_client", lambda _: next(clients))
    monkeypatch.setattr(web, "_MOST_OF_ONE", 3)
    monkeypatch.setattr(web, "_MOST_REFUSED", 3)
    monkeypatch.setattr(web, "_REFUSAL_S", 600.0)
    with idle(running.port, 3):
        status, headers, answer = running.ask("GET", "/")
        assert (status, headers["retry-after"]) == (503, "10")
        assert answer["error"].startswith("Your address has 500 connections open, which is the limit")
        with idle(running.port, 3), socket.create_connection(("127.0.0.1", running.port), timeout=60) as cut:
            with contextlib.suppress(ConnectionResetError):
                assert cut.recv(1) == b""
            assert running.ask("GET", "/")[0] == 200


def test_a_class_behind_one_address_is_served(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """300 students have a connection each, and their requests are limited by token."""
    monkeypatch.setattr(web, "_client", lambda _: "192.0.2.7")
    monkeypatch.setattr(web, "_CONNECTION_S", 600.0)
    with idle(running.port, 299) as others:
        assert running.ask("GET", "/submissions", student="ann")[0] == 200
        for number in (0, -1):
            others[number].sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert others[number].recv(100).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    ("host", "client"),
    [
        ("127.0.0.1", ""),
        ("::1", ""),
        ("::ffff:127.0.0.1", ""),
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)
def test_the_client_behind_an_address(host: str, client: str) -> None:
    """A machine has a whole network of IPv6; this one may forward everybody's requests."""
    assert web._client(host) == client


def test_one_student_has_few_requests_open(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind another web server, all addresses are one. Another student is served; an answer makes room again."""
    monkeypatch.setattr(web, "_MOST_REQUESTS", 1)
    head = (
        "POST /submissions/softmax HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nExpect: 100-continue\r\n"
        f"Authorization: Bearer {running.tokens.make('ann', 1)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", running.port), timeout=60) as slow:
        slow.sendall(head.encode())
        assert slow.recv(100).startswith(b"HTTP/1.1 100")  # it reads the body now
        status, _, answer = running.ask("GET", "/submissions", student="ann")
        assert (status, answer["error"]) == (
            429,
            "You have 1 requests open, which is the limit: wait for their answers.",
        )
        assert running.ask("GET", "/submissions", student="bob")[0] == 200
        slow.sendall(b"x = 12345")
        assert slow.recv(100).startswith(b"HTTP/1.1 202")
    assert running.ask("GET", "/submissions", student="ann")[0] == 200


def test_an_answer_that_nobody_reads_is_given_up(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server aborts the connection, and serves the next client."""
    monkeypatch.setattr(web, "_CONNECTION_S", 0.1)
    monkeypatch.setattr(web, "_REQUEST_S", 0.2)
    size = 64_000_000  # more than the buffers of the two sockets
    with (running.site / "large.html").open("wb") as file:
        file.truncate(size)
    with socket.create_connection(("127.0.0.1", running.port), timeout=60) as connection:
        connection.sendall(b"GET /large.html HTTP/1.1\r\nHost: x\r\n\r\n")
        ended = threading.Event()
        while not ended.wait(0.05):
            with contextlib.suppress(BlockingIOError):
                try:
                    if connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                        ended.set()
                    connection.send(b"x", socket.MSG_DONTWAIT)
                except (BrokenPipeError, ConnectionResetError):
                    ended.set()
    assert running.ask("GET", "/")[0] == 200


def test_a_client_that_does_not_read_the_end_is_cut_off() -> None:
    """`close` waits until everything is sent, so the connection is aborted some seconds later."""
    connection: Any = web.TimeLimitedProtocol.__new__(web.TimeLimitedProtocol)
    connection.cycle, connection.transport, connection.loop = None, Mock(), Mock()
    connection._close_if_idle()
    connection.transport.close.assert_called_once_with()
    connection.loop.call_later.assert_called_once_with(web._CLOSE_S, connection.transport.abort)


@pytest.mark.parametrize(
    "path",
    [
        "/../queue.sqlite",
        "/%2e%2e/queue.sqlite",
        "/..%2fqueue.sqlite",
        "//etc/passwd",
        "/index.html/../../queue.sqlite",
    ],
)
def test_only_the_published_pages_are_served(running: Running, path: str) -> None:
    """The queue lies next to them."""
    assert (running.site.parent / "queue.sqlite").is_file()
    assert raw(running.port, f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())[9:12] == b"404"


def test_the_pages_equal_the_static_site(running: Running) -> None:
    """Byte for byte, and a link out of the folder is not followed."""
    assert running.ask("GET", "/")[2] == running.ask("GET", "/index.html")[2] == b"<p>the board</p>"
    (running.site / "link.html").symlink_to(Path(__file__))
    assert running.ask("GET", "/link.html")[0] == 404


@pytest.mark.parametrize(("error", "status"), [(sqlite3.OperationalError("disk I/O error"), 503), (KeyError("x"), 500)])
def test_a_failure_of_the_server_is_a_sentence(
    running: Running, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    """Without a traceback, and without what failed."""

    def fail(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(JobQueue, "recent", fail)
    found, _, answer = running.ask("GET", "/submissions", student="ann")
    assert (found, list(answer)) == (status, ["error"])
    assert str(error) not in answer["error"]


def test_a_damaged_key_is_named_to_the_instructor_alone(
    running: Running, send: Send, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Once, and submissions are accepted again when it is back."""
    file = tmp_path / "token.key"
    key = file.read_bytes()
    token = running.tokens.make("ann", 1)
    file.write_bytes(b"")
    for _ in range(2):
        status, headers, answer = running.ask("GET", "/submissions", token=token)
        assert (status, headers["retry-after"]) == (503, "10")
        assert answer["error"] == "The server cannot check tokens now: tell your instructor."
    assert [record.message for record in caplog.records if str(file) in record.message] == [
        f"The key of the tokens, {file}, is damaged: put it back from a backup; or delete it, which voids all tokens, "
        "and make new ones with `grader classroom token`."
    ]
    assert file.read_bytes() == b""
    file.write_bytes(key)
    assert running.ask("GET", "/submissions", token=token)[0] == 200
