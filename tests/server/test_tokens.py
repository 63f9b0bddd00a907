"""Tests of grader.server.tokens: only the course's own, unchanged, unexpired tokens name a student."""

from __future__ import annotations

import base64
import json
import stat
from pathlib import Path

import pytest

from grader.errors import ClassroomError
from grader.server.tokens import Bearer, Tokens, course_tokens
from tests.server.conftest import Clock


def test_a_token_names_its_student_until_it_ends(clock: Clock) -> None:
    """To the second."""
    tokens = Tokens(b"k" * 32, clock)
    token = tokens.make("ann", days=2)
    assert tokens.bearer(token) == Bearer("ann", clock.now)
    clock.now += 2 * 86_400 - 1
    assert tokens.bearer(token) is not None
    clock.now += 1
    assert tokens.bearer(token) is None


def test_a_changed_token_names_nobody(clock: Clock) -> None:
    """Neither another student's name, nor a later end, nor another course's signature."""
    tokens = Tokens(b"k" * 32, clock)
    body, signature = tokens.make("ann", days=2).split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    for change in ({"student": "bob"}, {"ends": 9e9}):
        forged = base64.urlsafe_b64encode(json.dumps(claims | change).encode()).decode().rstrip("=")
        assert tokens.bearer(f"{forged}.{signature}") is None
    assert Tokens(b"l" * 32, clock).bearer(f"{body}.{signature}") is None


@pytest.mark.parametrize("token", ["", ".", "a.b", "ä.ö", "." * 10_000, "a" * 10_000, "\udcff.x"])
def test_nonsense_names_nobody(token: str) -> None:
    """And raises nothing."""
    assert Tokens(b"k" * 32).bearer(token) is None


def test_a_course_keeps_its_key(tmp_path: Path) -> None:
    """Closed to others; a damaged one is named."""
    token = course_tokens(tmp_path).make("ann", 1)
    assert course_tokens(tmp_path).bearer(token) is not None
    key = tmp_path / "token.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    key.write_bytes(b"short")
    with pytest.raises(ClassroomError, match="is damaged"):
        course_tokens(tmp_path)


def test_a_name_that_no_student_can_have_gets_no_token() -> None:
    """Names are checked as in the exchange."""
    with pytest.raises(ClassroomError, match="cannot be a student's id"):
        Tokens(b"k" * 32).make("<script>", 1)
