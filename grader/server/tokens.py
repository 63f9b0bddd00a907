"""Signed tokens: each names a student and when it expires, and only the course's server can make one.

The file `token.key` has the key and, after it, a line per student whose earlier tokens are revoked. Without the file
all tokens are void, so no revoked one comes back to life.
"""

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
from pathlib import Path

from grader.classroom.student_names import is_name
from grader.errors import ClassroomError

_MOST_CHARACTERS = 2_000  # of a token: a longer one is not decoded
_KEY_BYTES = 32
_DAY_S = 86_400.0


class Tokens:
    """Makes and checks the tokens of one course, whose key is in `file`. `clock` returns seconds since 1970."""

    def __init__(self, file: Path, clock: Callable[[], float] = time.time) -> None:
        self._file, self._clock = file, clock

    def make(self, student: str, days: float) -> str:
        """A token that ends after `days`.

        Raises:
            ClassroomError: the name cannot be a student's, or the file cannot be used.
        """
        if not is_name(student):
            raise ClassroomError(f"{student!r} cannot be a student's id.")
        now = self._clock()
        claims = {"student": student, "made": now, "ends": now + days * _DAY_S}
        body = _encoded(json.dumps(claims, separators=(",", ":")).encode())
        return f"{body}.{_signature(self._read()[0], body)}"

    def bearer(self, token: str) -> str | None:
        """The student of a token; None if it was not made here, was changed, was revoked, or has expired.

        Raises:
            ClassroomError: the file cannot be used.
        """
        body, _, signature = token.partition(".")
        if len(token) > _MOST_CHARACTERS or not token.isascii():
            return None
        key, revoked = self._read()
        if not hmac.compare_digest(signature, _signature(key, body)):
            return None
        claims = json.loads(_decoded(body))  # ours, because the signature is
        student, made = claims["student"], claims["made"]
        return student if self._clock() < claims["ends"] and made > revoked.get(student, 0.0) else None

    def check(self) -> None:
        """Raise a ClassroomError if the file cannot be used."""
        self._read()

    def revoke(self, student: str) -> None:
        """Void the tokens that were made for a student until now."""
        line = json.dumps([student, self._clock()]) + "\n"
        with self._file.open("ab") as opened:
            opened.write(line.encode())
            opened.flush()
            os.fsync(opened.fileno())

    def _read(self) -> tuple[bytes, dict[str, float]]:
        """The key, and by student the time until which tokens are revoked. Another process may have added one."""
        try:
            data = self._file.read_bytes()
            key, revoked = data[:_KEY_BYTES], dict(map(json.loads, data[_KEY_BYTES:].splitlines()))
            if len(key) == _KEY_BYTES and any(key) and all(isinstance(at, int | float) for at in revoked.values()):
                return key, revoked
            raise ValueError
        except OSError as error:
            raise ClassroomError(f"The key of the tokens, {self._file}, cannot be used: {error.strerror}.") from None
        except (ValueError, TypeError):
            raise ClassroomError(
                f"The key of the tokens, {self._file}, is damaged: put it back from a backup; or delete it, which "
                "voids all tokens, and make new ones with `grader classroom token`."
            ) from None


def course_tokens(folder: Path) -> Tokens:
    """The tokens of the course whose server keeps its files in `folder`. Its key is made at the first call.

    Raises:
        ClassroomError: the key cannot be read or written, or is damaged.
    """
    file = Path(folder) / "token.key"
    try:
        with contextlib.suppress(FileExistsError):
            write_key(file)
    except OSError as error:
        raise ClassroomError(f"The key of the tokens, {file}, cannot be used: {error.strerror}.") from None
    made = Tokens(file)
    made.check()
    return made


def write_key(file: Path) -> None:
    """Write a new key in one step, without revocations. Raises FileExistsError if there is one."""
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


def _signature(key: bytes, body: str) -> str:
    return _encoded(hmac.digest(key, body.encode(), hashlib.sha256))


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
