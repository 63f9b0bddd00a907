"""What learners submitted to the exchange: how much waits there, and fetching it. Anyone may put anything there."""

from __future__ import annotations

import os
import re
import stat
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from grader.classroom.course import must, timestamp
from grader.feedback.words import on_one_line

__all__ = ["Entry", "collect", "entry_of", "in_anothers_name", "submitted_at", "waiting"]

# student+assignment+when+random, as `nbgrader submit` names it. nbgrader reads `*`, `?` and `[` in names as patterns,
# and Formgrader writes names into pages and scripts as they are. Nor may they steer a
# terminal, or the direction of reading.
_NO_NAME = r"""*?[\]\\<>&"'`\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff"""
_ENTRY = re.compile(
    rf"(?P<student>[^\s.{_NO_NAME}][^{_NO_NAME}]*(?<!\s))\+[^+]+"
    r"\+(?P<when>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? [A-Za-z]{1,5})(?:\+[\w-]+)?"
)


class Entry(NamedTuple):
    """A submission in the inbox. `when` is in UTC, without a zone; `text` is how it is written there."""

    path: Path
    student: str
    when: datetime
    text: str
    uid: int


def entry_of(path: Path) -> Entry | None:
    """The submission at a path of the inbox, or None where there is something else."""
    from nbgrader.utils import parse_utc

    match = _ENTRY.fullmatch(path.name)
    if match is None:
        return None
    try:
        status = path.lstat()
        when = parse_utc(match["when"])
    except (OSError, ValueError, OverflowError):
        return None
    if not stat.S_ISDIR(status.st_mode):
        return None
    return Entry(path, match["student"], when, match["when"], status.st_uid)


def submitted_at(api: Any, assignment: str, student: str) -> str:
    """When it was submitted, ISO 8601 in UTC; nothing where the submission does not say."""
    when = timestamp(api, assignment, student)
    return f"{when.isoformat(timespec='seconds')}Z" if when else ""


def collect(api: Any, assignment: str) -> tuple[int, list[str]]:
    """Fetch new and newer submissions; how many there were, and what is the matter with others, as sentences.

    Raises:
        ClassroomError: nbgrader can collect nothing at all.
    """
    from nbgrader.utils import capture_log, temp_attrs

    if not _inbox(api).is_dir():
        return 0, []  # never released here: what lies in submitted/ came another way
    before = {name: timestamp(api, assignment, name) for name in api.get_submitted_students(assignment)}
    with temp_attrs(api.coursedir, assignment_id=assignment):
        app = api.exchange.Collect(coursedir=api.coursedir, authenticator=api.authenticator, parent=api)
        app.update = True
        must(capture_log(app), f"{assignment} cannot be collected")
    after = {name: timestamp(api, assignment, name) for name in api.get_submitted_students(assignment)}
    return sum(name not in before or before[name] != when for name, when in after.items()), list(
        getattr(app, "problems", ())  # an exchange of another kind has none
    )


def in_anothers_name(entries: list[Entry]) -> list[str]:
    """What users of this machine submitted as somebody else; nothing where learners are not its users."""
    owners = {entry.uid: _name(entry) for entry in entries}
    students = {entry.student for entry in entries}
    are_users = any(owners[entry.uid] == entry.student for entry in entries)
    return [
        f"{on_one_line(str(entry.path))} is in {entry.student}'s name and was put there by {owner}: ask them"
        for entry in entries
        if (owner := owners[entry.uid]) not in ("", entry.student) and (are_users or owner in students)
    ]


def _name(entry: Entry) -> str:
    """The owner's name; empty for oneself."""
    import pwd

    if entry.uid == os.getuid():
        return ""
    try:
        return pwd.getpwuid(entry.uid).pw_name
    except KeyError:
        return f"user {entry.uid}"


def waiting(api: Any, assignment: str) -> int:
    """How many students have submitted to the exchange what was not collected."""
    inbox = _inbox(api)
    entries = inbox.glob(f"*+{assignment}+*") if os.access(inbox, os.R_OK | os.X_OK) else ()
    newest: dict[str, datetime] = {}
    for entry in filter(None, map(entry_of, entries)):
        newest[entry.student] = max(newest.get(entry.student, entry.when), entry.when)
    collected = {student: timestamp(api, assignment, student) for student in newest}
    return sum((collected[student] or datetime.min) < when for student, when in newest.items())


def _inbox(api: Any) -> Path:
    return Path(api.exchange_root, api.course_id, "inbound")
