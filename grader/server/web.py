"""The server's web application: it takes submissions from learners with a token, and shows the published leaderboard.

```text
POST /submissions/EXERCISE   the text of a solution, in UTF-8 → 202 and the job; 200 if this text was sent last
GET  /submissions/ID         one of the learner's own jobs: its place in the queue, or its verdict
GET  /submissions            the learner's newest jobs
GET  /…                      the pages of `grader leaderboard publish`, for everybody
```

`/submissions` needs the header `Authorization: Bearer TOKEN`. An answer is JSON; a refusal has the key `error`, a
sentence.
"""

from __future__ import annotations

import asyncio
import contextlib
import http
import ipaddress
import logging
import math
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from uvicorn.protocols.http.h11_impl import H11Protocol

from grader.errors import ClassroomError, GraderError, UnknownExercise
from grader.exercise import MAX_SOURCE_BYTES
from grader.server.job_queue import JobQueue, Limits, Refused
from grader.server.tokens import Tokens
from grader.submission import from_source

_BODY_S = 10.0  # within which a submission must arrive
_CONNECTION_S = 30.0  # after which a connection without a request is closed
_REQUEST_S = 120.0  # after which it is closed in any case
_CLOSE_S = 10.0  # for a client to read the rest of an answer
_MOST_CONNECTIONS = 1_000
_MOST_OF_ONE = 500  # connections from one address, which may be a whole class's
_MOST_REFUSED = 300  # connections above that which get an answer
_MOST_REQUESTS = 20  # of one student at once
_REFUSAL_S = 2.0  # for a client above these limits to read the refusal
_MOST_HEADER_BYTES = 16_384
_WORDS = {404: "There is no such page.", 405: "This address does not take requests of this kind."}


class Submissions:
    """Answers the requests under `/submissions`."""

    def __init__(self, queue: JobQueue, tokens: Tokens, limits: Limits, versions: Mapping[str, str]) -> None:
        self._queue, self._tokens, self._limits, self._versions = queue, tokens, limits, versions
        self._open: Counter[str] = Counter()  # requests that are not answered yet, by student
        self._told = ""

    async def submit(self, request: Request) -> Response:
        with self._student(request) as student:
            source = await _body(request)
            job, is_new = await run_in_threadpool(self._accept, student, request.path_params["exercise"], source)
            return JSONResponse(job.to_dict(), 202 if is_new else 200)

    async def one(self, request: Request) -> Response:
        with self._student(request) as student:
            job = await run_in_threadpool(self._queue.job, request.path_params["key"], student)
            if job is None:
                raise HTTPException(404, "You have no submission with this id.")
            return JSONResponse(job.to_dict())

    async def newest(self, request: Request) -> Response:
        with self._student(request) as student:
            jobs = await run_in_threadpool(self._queue.recent, student)
            return JSONResponse([job.to_dict() for job in jobs])

    def _accept(self, student: str, exercise_id: str, source: str) -> Any:
        submission = from_source(source, exercise_id, "your submission")
        version = self._versions.get(exercise_id, "")
        return self._queue.submit(student, exercise_id, submission.source, version, self._limits)

    @contextlib.contextmanager
    def _student(self, request: Request) -> Iterator[str]:
        """The student whose token came with a request; only the token says who that is."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        try:
            student = self._tokens.bearer(token.strip()) if kind.lower() == "bearer" else None
        except ClassroomError as error:  # its sentence is for the instructor
            self._tell(str(error))
            sentence = "The server cannot check tokens now: tell your instructor."
            raise HTTPException(503, sentence, {"Retry-After": "10"}) from None
        if student is None:
            sentence = "This needs a valid token: ask your instructor for a new one."
            raise HTTPException(401, sentence, {"WWW-Authenticate": "Bearer"})
        if self._open[student] >= _MOST_REQUESTS:
            sentence = f"You have {_MOST_REQUESTS} requests open, which is the limit: wait for their answers."
            raise HTTPException(429, sentence, {"Retry-After": "10", "Connection": "close"})
        self._open[student] += 1
        try:
            yield student
        finally:
            self._open[student] -= 1

    def _tell(self, sentence: str) -> None:
        """Log a sentence, unless it was the last one."""
        if sentence != self._told:
            self._told = sentence
            logging.getLogger("uvicorn.error").error(sentence)


async def _body(request: Request) -> str:
    """The body as text.

    Raises:
        HTTPException: it is too large, too slow, or not UTF-8.
    """
    most = MAX_SOURCE_BYTES
    too_large = HTTPException(413, f"A solution may have at most {most // 1000} kB.", {"Connection": "close"})
    if int(request.headers.get("content-length", 0)) > most:  # h11 has checked that it is a number
        raise too_large
    found = bytearray()
    try:
        async with asyncio.timeout(_BODY_S):
            async for chunk in request.stream():
                found += chunk
                if len(found) > most:
                    raise too_large
    except TimeoutError:
        raise HTTPException(
            408, f"The submission did not arrive within {_BODY_S:g} s.", {"Connection": "close"}
        ) from None
    except ClientDisconnect:
        raise HTTPException(400, "The connection closed before the whole submission arrived.") from None
    try:
        return found.decode("utf-8")
    except UnicodeDecodeError:
        raise HTTPException(422, "The submission is not text in UTF-8.") from None


def application(queue: JobQueue, tokens: Tokens, site: Path, limits: Limits, versions: Mapping[str, str]) -> Starlette:
    """The web application; `site` is the folder of the published leaderboard, `versions` are those of the exercises."""
    asked = Submissions(queue, tokens, limits, versions)
    return Starlette(
        routes=[
            Route("/submissions/{exercise}", asked.submit, methods=["POST"]),
            Route("/submissions/{key}", asked.one, methods=["GET"]),
            Route("/submissions", asked.newest, methods=["GET"]),
            Mount("/", StaticFiles(directory=site, html=True)),
        ],
        exception_handlers={
            HTTPException: _refuse,
            GraderError: _explain,
            sqlite3.Error: _busy,
            Exception: _failed,
        },
    )


async def _refuse(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    is_standard = error.detail == http.HTTPStatus(error.status_code).phrase
    said = _WORDS.get(error.status_code, error.detail) if is_standard else error.detail
    return JSONResponse({"error": said}, error.status_code, dict(error.headers or {}))


async def _explain(_request: Request, error: Exception) -> Response:
    if isinstance(error, Refused):
        again = {"Retry-After": str(max(1, math.ceil(error.retry_after_s)))}
        return JSONResponse({"error": str(error)}, 429, again)
    return JSONResponse({"error": str(error)}, 404 if isinstance(error, UnknownExercise) else 422)


async def _busy(_request: Request, _error: Exception) -> Response:
    return JSONResponse({"error": "The queue cannot be written now: try again later."}, 503, {"Retry-After": "10"})


async def _failed(_request: Request, _error: Exception) -> Response:
    return JSONResponse({"error": "The server failed on this request: tell your instructor."}, 500)


_open: Counter[str] = Counter()  # connections, by client
_REFUSED = JSONResponse(
    {"error": f"Your address has {_MOST_OF_ONE} connections open, which is the limit: try again later."},
    503,
    {"Retry-After": "10", "Connection": "close"},
)


def _client(host: str) -> str:
    """The client with this address: a network of IPv6; empty for this machine, where a web server may be in front."""
    address = ipaddress.ip_address(host.partition("%")[0])
    address = getattr(address, "ipv4_mapped", None) or address
    if address.is_loopback:
        return ""
    return str(ipaddress.ip_network((address, 64), strict=False) if address.version == 6 else address)


class TimeLimitedProtocol(H11Protocol):
    """HTTP/1.1 that closes a connection after a time, so that a slow client cannot hold it open.

    Connections from an address with too many get a refusal; after many of those, not even that.
    """

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._latest = self.loop.time() + _REQUEST_S
        peer = transport.get_extra_info("peername")  # None if the client is gone already
        self._from = _client(peer[0]) if peer else ""
        _open[self._from] += 1
        others = _open[self._from] - 1 if self._from else 0
        patience_s = _CONNECTION_S
        if others >= _MOST_OF_ONE:
            self.app, patience_s = _REFUSED, _REFUSAL_S
        if others >= _MOST_OF_ONE + _MOST_REFUSED:
            transport.abort()
        self._end = self.loop.call_later(patience_s, self._close_if_idle)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end.cancel()
        _open[self._from] -= 1
        if not _open[self._from]:
            del _open[self._from]
        super().connection_lost(exc)

    def _close_if_idle(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()  # which waits until the client has read everything
            self._end = self.loop.call_later(_CLOSE_S, self.transport.abort)
        elif self.loop.time() >= self._latest:  # the client does not read the answer
            self.transport.abort()
        else:
            self._end = self.loop.call_later(1.0, self._close_if_idle)


def server(
    app: Starlette, host: str, port: int, certificate: Path | None = None, key: Path | None = None
) -> uvicorn.Server:
    """A web server for the application, which has limits for slow and for many clients. `port` 0 takes a free one."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            host=host,
            port=port,
            http=TimeLimitedProtocol,
            ws="none",
            lifespan="off",
            loop="asyncio",
            access_log=False,
            log_level="warning",
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_MOST_CONNECTIONS,
            h11_max_incomplete_event_size=_MOST_HEADER_BYTES,
            timeout_graceful_shutdown=5,
            ssl_certfile=certificate,
            ssl_keyfile=key,
        )
    )
