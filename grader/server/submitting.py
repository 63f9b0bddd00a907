"""The learner's side, `grader submit`: sends a solution to the class's server and waits for the verdict."""

from __future__ import annotations

import http.client
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote, urlsplit

from grader.errors import GraderError
from grader.submission import Submission
from grader.verdict import Progress

TOKEN_VARIABLE = "GRADER_TOKEN"
_MOST_BYTES = 2_000_000  # of an answer
_REQUEST_S = 30.0
_POLL_S, _LATER_S = 1.0, 3.0  # between two looks at the queue, for one of the next jobs and for the others
_SOON = 10
_PATIENCE_S = 300.0  # for a server that restarts
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class Outcome:
    """The server's answer about one exercise. `status` is empty while there is no verdict."""

    exercise: str
    id: str
    state: str
    place: int = 0
    status: str = ""
    points: float = 0.0
    max_points: float = 0.0
    report: str = ""
    problem: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for `json.dumps`."""
        return asdict(self)

    def to_text(self) -> str:
        """The report, or where the submission is."""
        if self.state != "done":
            where = f"place {self.place} in the queue" if self.place else "being judged"
            return f"{self.exercise}: accepted, {where}."
        return f"{self.exercise}: no verdict. {self.problem}" if self.problem else self.report


class ClassServer:
    """A class's server at `url`, for the learner with this token.

    Raises:
        GraderError: the address would send the token in clear text over a network.
    """

    def __init__(self, url: str, token: str, sleep: Callable[[float], None] = time.sleep) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise GraderError(f"{url} is not a server's address, which begins with https://.")
        if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
            raise GraderError(f"{url} would send your token in clear text: use https://.")
        self._url, self._token, self._sleep = url.rstrip("/"), token, sleep
        direct = [urllib.request.ProxyHandler({})] if parts.scheme == "http" else []  # a proxy would read the token
        self._opener = urllib.request.build_opener(_NoRedirect, *direct)

    def submit(self, submission: Submission) -> Outcome:
        """Send a text; the same text again finds the job that it has.

        Raises:
            GraderError: the server refuses it, or cannot be reached.
        """
        path = f"/submissions/{quote(submission.exercise_id, safe='')}"
        return _outcome(self._patiently("POST", path, submission.source.encode()))

    def wait(self, outcome: Outcome, progress: Progress) -> Outcome:
        """Wait for the verdict, and report the place in the queue meanwhile.

        Raises:
            GraderError: as `submit`.
        """
        while outcome.state != "done":
            where = f"place {outcome.place} in the queue" if outcome.place else "being judged"
            progress(f"{outcome.exercise}: {where}", outcome.place, 0)  # a line per place
            self._sleep(_POLL_S if outcome.place <= _SOON else _LATER_S)
            outcome = _outcome(self._patiently("GET", f"/submissions/{outcome.id}"))
        return outcome

    def _patiently(self, method: str, path: str, body: bytes | None = None) -> Any:
        """Ask, again and again for some minutes if the server does not answer: every request may be repeated."""
        waited, pause = 0.0, _POLL_S
        while True:
            try:
                return self._ask(method, path, body)
            except urllib.error.HTTPError as error:
                if error.code != 503 or waited >= _PATIENCE_S:
                    _refused(error)
            except (OSError, http.client.HTTPException) as error:
                reason = getattr(error, "reason", error)
                if waited >= _PATIENCE_S or "CERTIFICATE" in str(reason):
                    raise GraderError(f"{self._url} cannot be reached: {reason}.") from None
            self._sleep(pause)
            waited, pause = waited + pause, min(2 * pause, 15.0)

    def _ask(self, method: str, path: str, body: bytes | None) -> Any:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "text/plain; charset=utf-8"}
        request = urllib.request.Request(self._url + path, data=body, headers=headers, method=method)
        with self._opener.open(request, timeout=_REQUEST_S) as answer:
            text = answer.read(_MOST_BYTES)
        try:
            return json.loads(text)
        except ValueError:
            raise GraderError(f"{self._url} is not a class's server: its answer is not JSON.") from None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect, which would send the token elsewhere."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def token_of(file: Path | None) -> str:
    """The learner's token: the text of `file`, or else the environment's GRADER_TOKEN.

    Raises:
        GraderError: there is none.
    """
    if file is not None:
        try:
            return file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise GraderError(f"The token cannot be read from {file}: {error}.") from None
    if token := os.environ.get(TOKEN_VARIABLE, "").strip():
        return token
    raise GraderError(f"Set {TOKEN_VARIABLE} to the token from your instructor, or name its file with --token.")


def _outcome(data: Any) -> Outcome:
    try:
        known = {name: data[name] for name in Outcome.__dataclass_fields__ if name in data}
        return Outcome(**known)
    except TypeError:
        raise GraderError(
            "The server's answer is not a submission. Does it run the same version of the grader?"
        ) from None


def _refused(error: urllib.error.HTTPError) -> NoReturn:
    try:
        sentence = str(json.loads(error.read(_MOST_BYTES))["error"])
    except (ValueError, KeyError, TypeError, OSError):
        sentence = f"The server refused the request, with status {error.code}."
    if again := error.headers.get("Retry-After"):
        sentence += f" You may try again in {again} s."
    raise GraderError(sentence) from None
