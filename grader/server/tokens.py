"""Signed tokens: each names a student and when it ends, and only the course's server can make one."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from grader.classroom.student_names import is_name
from grader.errors import ClassroomError

_MOST_CHARACTERS = 2_000  # of a token: a longer one is not decoded
_KEY_BYTES = 32
_DAY_S = 86_400.0


@dataclass(frozen=True)
class Bearer:
    """The student whom a token names, and when it was made, in seconds since 1970."""

    student: str
    made_at: float


class Tokens:
    """Makes and checks the tokens of one course. `clock` returns seconds since 1970."""

    def __init__(self, key: bytes, clock: Callable[[], float] = time.time) -> None:
        self._key, self._clock = key, clock

    def make(self, student: str, days: float) -> str:
        """A token that ends after `days`.

        Raises:
            ClassroomError: the name cannot be a student's.
        """
        if not is_name(student):
            raise ClassroomError(f"{student!r} cannot be a student's id.")
        now = self._clock()
        claims = {"student": student, "made": now, "ends": now + days * _DAY_S}
        body = _encoded(json.dumps(claims, separators=(",", ":")).encode())
        return f"{body}.{self._signature(body)}"

    def bearer(self, token: str) -> Bearer | None:
        """The student of a token; None if it was not made here, was changed, or has ended."""
        body, _, signature = token.partition(".")
        if len(token) > _MOST_CHARACTERS or not token.isascii():
            return None
        if not hmac.compare_digest(signature, self._signature(body)):
            return None
        claims = json.loads(_decoded(body))  # ours, because the signature is
        return Bearer(claims["student"], claims["made"]) if self._clock() < claims["ends"] else None

    def _signature(self, body: str) -> str:
        return _encoded(hmac.digest(self._key, body.encode(), hashlib.sha256))


def course_tokens(folder: Path) -> Tokens:
    """The tokens of the course whose server keeps its files in `folder`. Its key is made at the first call.

    Raises:
        ClassroomError: the key cannot be read or written, or is damaged.
    """
    file = Path(folder) / "token.key"
    try:
        with contextlib.suppress(FileExistsError):
            _write_key(file)
        key = file.read_bytes()
    except OSError as error:
        raise ClassroomError(f"The key of the tokens, {file}, cannot be used: {error.strerror}.") from None
    if len(key) != _KEY_BYTES:
        raise ClassroomError(f"{file} is damaged. Without it all tokens are void: delete it, and make new ones.")
    return Tokens(key)


def _write_key(file: Path) -> None:
    """Write a new key in one step. Raises FileExistsError if there is one."""
    if file.exists():
        raise FileExistsError
    scratch = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    descriptor = os.open(scratch, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with open(descriptor, "wb") as opened:
            opened.write(secrets.token_bytes(_KEY_BYTES))
            opened.flush()
            os.fsync(opened.fileno())
        os.link(scratch, file)  # fails if another process was faster
    finally:
        scratch.unlink()


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
