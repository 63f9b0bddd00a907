"""What learners submitted to the exchange: how much waits there, and fetching it."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from grader.classroom.course import last_words, must

__all__ = ["collect", "submitted_at", "waiting"]

_ENTRY = re.compile(r"(.+)\+[^+]+\+(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.\d+)? UTC(?:\+[\w-]+)?$")


def submitted_at(api: Any, assignment: str, student: str) -> str:
    """When it was submitted, ISO 8601 in UTC; nothing where the submission does not say."""
    try:
        when = api.get_submitted_timestamp(assignment, student)
    except (ValueError, OverflowError, OSError):  # the file is the student's
        return ""
    return f"{when.isoformat(timespec='seconds')}Z" if when else ""


def collect(api: Any, assignment: str) -> tuple[int, list[str]]:
    """Fetch new and newer submissions; how many there were, and what is the matter with others, as sentences.

    Whatever somebody else has put into the exchange, which anyone may, costs only those their submission in whose name
    it is: nbgrader collects all or, at the first thing that it cannot read, nothing.

    Raises:
        ClassroomError: nbgrader can collect nothing at all.
    """
    if not _inbox(api).is_dir():
        return 0, []  # never released here: what lies in submitted/ came another way
    before = {name: submitted_at(api, assignment, name) for name in api.get_submitted_students(assignment)}
    result = api.collect(assignment, update=True)
    notes = _in_anothers_name(_entries(api, assignment))
    notes += [] if result["success"] else _collect_each(api, assignment, result)
    after = {name: submitted_at(api, assignment, name) for name in api.get_submitted_students(assignment)}
    return sum(before.get(name) != when for name, when in after.items()), notes


def _collect_each(api: Any, assignment: str, failed: Any) -> list[str]:
    entries = _entries(api, assignment)
    notes = [f"{entry} is no submission: remove it" for entry in entries if not _ENTRY.match(entry.name)]
    students = sorted({match[1] for entry in entries if (match := _ENTRY.match(entry.name))})
    collected = 0
    for student in students:
        with _only(api, student):
            result = api.collect(assignment, update=True)
        collected += bool(result["success"])
        if not result["success"]:
            notes.append(f"what {student} submitted cannot be collected: {last_words(result)}")
    if not notes or (students and not collected):
        must(failed, f"{assignment} cannot be collected")
    return notes


def _in_anothers_name(entries: list[Path]) -> list[str]:
    """What users of this machine submitted as somebody else; nothing where all learners are one user of it."""
    owners = {entry: _owner(entry) for entry in entries if _ENTRY.match(entry.name)}
    students = {entry: entry.name.rsplit("+", 3)[0] for entry in owners}
    named = set(students.values())
    if len(set(owners.values())) == 1 < len(named) and named.isdisjoint(owners.values()):
        return []
    return [
        f"{entry} is in {students[entry]}'s name and was put there by {owner}: ask them"
        for entry, owner in owners.items()
        if owner not in ("", students[entry])
    ]


def _owner(entry: Path) -> str:
    """The user's name; empty for oneself."""
    if entry.stat().st_uid == os.getuid():
        return ""
    try:
        return entry.owner()
    except KeyError:
        return f"user {entry.stat().st_uid}"


@contextmanager
def _only(api: Any, student: str) -> Iterator[None]:
    before = api.coursedir.student_id
    api.coursedir.student_id = glob.escape(student)
    try:
        yield
    finally:
        api.coursedir.student_id = before


def waiting(api: Any, assignment: str) -> int:
    """How many students have submitted to the exchange what was not collected."""
    collected = {name: submitted_at(api, assignment, name) for name in api.get_submitted_students(assignment)}
    newest: dict[str, str] = {}
    for match in filter(None, (_ENTRY.match(entry.name) for entry in _entries(api, assignment))):
        newest[match[1]] = max(newest.get(match[1], ""), f"{match[2]}T{match[3]}Z")
    return sum(collected.get(student, "") < when for student, when in newest.items())


def _inbox(api: Any) -> Path:
    return Path(api.exchange_root, api.course_id, "inbound")


def _entries(api: Any, assignment: str) -> list[Path]:
    inbox = _inbox(api)
    return sorted(inbox.glob(f"*+{assignment}+*")) if os.access(inbox, os.R_OK | os.X_OK) else []
