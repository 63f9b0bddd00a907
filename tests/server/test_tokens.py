"""Tests of grader.server.tokens: only the course's own, unchanged, unexpired tokens name a student."""

from __future__ import annotations

import base64
import json
import stat
from pathlib import Path

import pytest

from grader.errors import ClassroomError
from grader.server.tokens import Tokens, course_tokens, write_key
from tests.server.conftest import Clock


@pytest.fixture
def tokens(tmp_path: Path, clock: Clock) -> Tokens:
    write_key(tmp_path / "token.key")
    return Tokens(tmp_path / "token.key", clock)


def test_a_token_names_its_student_until_it_ends(tokens: Tokens, clock: Clock) -> None:
    """To the second."""
    token = tokens.make("ann", days=2)
    assert tokens.bearer(token) == "ann"
    clock.now += 2 * 86_400 - 1
    assert tokens.bearer(token) is not None
    clock.now += 1
    assert tokens.bearer(token) is None


def test_a_changed_token_names_nobody(tokens: Tokens, tmp_path: Path) -> None:
    """Neither another student's name, nor a later end, nor another course's signature."""
    body, signature = tokens.make("ann", days=2).split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    for change in ({"student": "bob"}, {"ends": 9e9}):
        forged = base64.urlsafe_b64encode(json.dumps(claims | change).encode()).decode().rstrip("=")
        assert tokens.bearer(f"{forged}.{signature}") is None
    write_key(tmp_path / "other.key")
    assert Tokens(tmp_path / "other.key").bearer(f"{body}.{signature}") is None


def test_a_revoked_token_stays_revoked(tokens: Tokens, clock: Clock, tmp_path: Path) -> None:
    """In every process that reads the key's file, and without it no token is valid; one made later is."""
    lost = {student: tokens.make(student, 1) for student in ("ann", "bob")}
    clock.now += 10
    tokens.revoke("ann")
    again = Tokens(tmp_path / "token.key", clock)
    assert [again.bearer(token) for token in lost.values()] == [None, "bob"]
    clock.now += 10
    assert again.bearer(tokens.make("ann", 1)) == "ann"
    (tmp_path / "token.key").unlink()
    assert course_tokens(tmp_path).bearer(lost["bob"]) is None


@pytest.mark.parametrize("token", ["", ".", "a.b", "ä.ö", "." * 10_000, "a" * 10_000, "\udcff.x"])
def test_nonsense_names_nobody(tokens: Tokens, token: str) -> None:
    """And raises nothing."""
    assert tokens.bearer(token) is None


def test_a_course_keeps_its_key(tmp_path: Path) -> None:
    """Closed to others."""
    token = course_tokens(tmp_path).make("ann", 1)
    assert course_tokens(tmp_path).bearer(token) is not None
    assert stat.S_IMODE((tmp_path / "token.key").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "damaged",
    [b"", b"short", bytes(32), bytes(4096), b"k" * 32 + b'["ann", "x"]\n', b"k" * 32 + b'["ann', b"k" * 32 + b"5\n"],
)
def test_a_damaged_key_is_named_and_kept(tmp_path: Path, damaged: bytes) -> None:
    """A new one would void all tokens; one of zeros, as after a loss of power, everybody knows."""
    file = tmp_path / "token.key"
    file.write_bytes(damaged)
    with pytest.raises(ClassroomError, match=r"token\.key, is damaged: put it back from a backup; or delete it"):
        course_tokens(tmp_path)
    assert file.read_bytes() == damaged


def test_a_name_that_no_student_can_have_gets_no_token(tokens: Tokens) -> None:
    """Names are checked as in the exchange."""
    with pytest.raises(ClassroomError, match="cannot be a student's id"):
        tokens.make("<script>", 1)
