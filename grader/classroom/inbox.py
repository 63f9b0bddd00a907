"""What learners submitted to the exchange: how much waits there, and fetching it. Anyone may put anything there."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import stat
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from grader.classroom.course_folder import must, notebooks, timestamp
from grader.classroom.student_names import is_name, look_alikes, spelled
from grader.words import on_one_line

# student+assignment+when+random, as `nbgrader submit` names it.
_ENTRY = re.compile(
    r"(?P<student>.+)\+[^+]+"
    r"\+(?P<when>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? [A-Za-z]{1,5})(?:\+[\w-]+)?"
)
_TAKES = timedelta(minutes=5)  # what handing in may take, and clocks of machines that share an exchange may differ by
_MOST_FILES = 10_000
_MOST_NAMED = 5


class Entry(NamedTuple):
    """A submission in the inbox. `when` is in UTC, without a zone; `text` is how it is written there.

    `changed_ns`: when the folder, or a notebook in it, was last changed, on the clock of the machine that keeps it.
    """

    path: Path
    student: str
    when: datetime
    text: str
    uid: int
    changed_ns: int

    @property
    def changed(self) -> datetime:
        """In UTC, without a zone, as `when` is."""
        return datetime.fromtimestamp(self.changed_ns / 1e9, UTC).replace(tzinfo=None)


class Sifted(NamedTuple):
    """What may be collected, each with the time that counts; and what is the matter with others, as sentences."""

    entries: list[Entry]
    problems: list[str]


def entry_of(path: Path) -> Entry | None:
    """The submission at a path of the inbox, or None where there is something else."""
    from nbgrader.utils import parse_utc

    match = _ENTRY.fullmatch(path.name)
    if match is None or not is_name(match["student"]):
        return None
    try:
        status = path.lstat()
        when = parse_utc(match["when"])
        changed = changed_ns(path) if stat.S_ISDIR(status.st_mode) else None
    except (OSError, ValueError, OverflowError):
        return None
    return None if changed is None else Entry(path, match["student"], when, match["when"], status.st_uid, changed)


def changed_ns(folder: Path) -> int | None:
    """When a folder, or a notebook in it, was last changed, which its owner cannot set back; None of too many files."""
    found = [folder.lstat().st_ctime_ns]
    with contextlib.suppress(PermissionError), os.scandir(folder) as files:  # closed to us: copying it says so
        for number, file in enumerate(files):
            if number == _MOST_FILES:
                return None
            if file.name.endswith(".ipynb"):
                found.append(file.stat(follow_symlinks=False).st_ctime_ns)
    return max(found)


def submitted_at(api: Any, assignment: str, student: str) -> str:
    """When it was submitted, ISO 8601 in UTC; nothing where the submission does not say."""
    when = timestamp(api, assignment, student)
    return f"{when.isoformat(timespec='seconds')}Z" if when else ""


def collect(api: Any, assignment: str, accept: Collection[str] = ()) -> tuple[int, list[str]]:
    """Fetch new and newer submissions; how many there were, and what is the matter with others, as sentences.

    Of the names in `accept` it is believed that their entries are theirs, and when they say that they were handed in.

    Raises:
        ClassroomError: nbgrader can collect nothing at all.
    """
    from nbgrader.utils import capture_log, temp_attrs

    if not _inbox(api.exchange_root, api.course_id).is_dir():
        return 0, []  # never released here: what lies in submitted/ came another way
    before = {name: timestamp(api, assignment, name) for name in api.get_submitted_students(assignment)}
    with temp_attrs(api.coursedir, assignment_id=assignment):
        app = _collector(api)
        app.update, app.accept = True, frozenset(accept)
        must(capture_log(app), f"{assignment} cannot be collected")
    after = {name: timestamp(api, assignment, name) for name in api.get_submitted_students(assignment)}
    return sum(name not in before or before[name] != when for name, when in after.items()), list(
        getattr(app, "problems", ())  # an exchange of another kind has none
    )


def other_notebooks(api: Any, assignment: str, student: str) -> set[str]:
    """The notebooks, without `.ipynb`, in what a student submitted last that are none of the assignment's."""
    inbox = _inbox(api.exchange_root, api.course_id)
    paths = inbox.glob(f"*+{assignment}+*") if os.access(inbox, os.R_OK | os.X_OK) else []
    entries = [entry for entry in map(entry_of, paths) if entry is not None and entry.student == student]
    if not entries:
        return set()
    with contextlib.suppress(OSError):
        names = os.listdir(max(entries, key=lambda entry: entry.when).path)
        return {name.removesuffix(".ipynb") for name in names if name.endswith(".ipynb")} - notebooks(api, assignment)
    return set()


def sift(
    coursedir: Any, assignment: str, inbox: Path, *, check_owner: bool = True, accept: Collection[str] = ()
) -> Sifted:
    """Tell what may be collected from what stays, and which time counts.

    Where learners are users of this machine, it knows who made a folder, and when: an entry in another's name stays,
    and a time that is earlier than the folder's own does not count, unless that of the folder was collected before.
    """
    paths = sorted(inbox.glob(f"*+{assignment}+*")) if os.access(inbox, os.R_OK | os.X_OK) else []
    found = [(path, entry_of(path)) for path in paths]
    problems = [f"{path}{spelled(path.name)} is no submission: remove it" for path, entry in found if entry is None]
    entries = [entry for _, entry in found if entry is not None]
    known = _known(coursedir)
    collected = {entry.student: _collected(coursedir, assignment, entry.student) for entry in entries}
    if check_owner:
        entries = _of_their_own(entries, known, collected, accept, problems)
        entries = _in_time(entries, collected, accept, problems)
    entries = _told_apart(entries, known, accept, problems)
    for name in sorted(set(accept) - {entry.student for entry in entries}):
        problems.append(f"there is nothing in {name}'s name to accept")
    return Sifted(entries, [on_one_line(problem) for problem in problems])


def _known(coursedir: Any) -> set[str]:
    """The students of the gradebook, and those of whom there is work."""
    from nbgrader.api import Gradebook

    with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
        known = {student.id for student in gradebook.students}
    submitted = Path(coursedir.format_path(coursedir.submitted_directory, "", ""))
    return known | {path.parent.name for path in submitted.glob("*/[!.]*")}


def _collected(coursedir: Any, assignment: str, student: str) -> datetime | None:
    where = coursedir.format_path(coursedir.submitted_directory, student, assignment)
    try:
        when: datetime | None = coursedir.get_existing_timestamp(where)
    except (ValueError, OverflowError, OSError):  # it came another way, and says nothing
        return None
    return when


def _of_their_own(
    entries: list[Entry],
    known: set[str],
    collected: dict[str, datetime | None],
    accept: Collection[str],
    problems: list[str],
) -> list[Entry]:
    """Those that are in their owner's name, or in one that is accepted; and all where learners are no users."""
    students = {*known, *(entry.student for entry in entries)}
    are_users = any(_name(entry) == entry.student for entry in entries)
    own = []
    for entry in entries:
        owner = _name(entry)
        if owner in ("", entry.student) or not (are_users or owner in students or _is_user(entry.student)):
            own.append(entry)
            continue
        said = f"{entry.path}{spelled(entry.path.name)} is in {entry.student}'s name and was put there by {owner}"
        if entry.student in accept:
            own.append(entry)
            problems.append(f"{said}; it is accepted")
        elif collected[entry.student] in (entry.when, entry.changed):
            problems.append(f"{said}, and was collected: ask both; if it is not {entry.student}'s, delete both copies")
        else:
            remedy = f"collect it with --accept {shlex.quote(entry.student)}"
            problems.append(f"{said}, so it stays there: ask both and, if it is {entry.student}'s, {remedy}")
    return own


def _in_time(
    entries: list[Entry], collected: dict[str, datetime | None], accept: Collection[str], problems: list[str]
) -> list[Entry]:
    """With the time of the folder where a user's entry says that it is older than that."""
    judged, old = [], []
    for entry in entries:
        last = collected[entry.student]
        trusted = entry.student in accept or _name(entry) != entry.student
        if trusted or entry.changed <= entry.when + _TAKES:
            judged.append(entry)
        elif last is not None and entry.when <= last:  # else copying an exchange would make all old work the newest
            judged.append(entry)
            if entry.changed > last + _TAKES:
                old.append(on_one_line(entry.path.name))
        else:
            judged.append(entry._replace(when=entry.changed, text=f"{entry.changed:%Y-%m-%d %H:%M:%S.%f} UTC"))
            problems.append(
                f"{entry.path} says {entry.when:%Y-%m-%d %H:%M} and was last changed {entry.changed:%Y-%m-%d %H:%M} "
                "UTC, which counts; if it was only copied since, believe what it says with "
                f"--accept {shlex.quote(entry.student)}"
            )
    if old:
        more = f" and {len(old) - _MOST_NAMED} more" if len(old) > _MOST_NAMED else ""
        problems.append(
            "changed after what was collected, but no newer by what they say, as when an exchange is copied, so they "
            f"stay there: {', '.join(old[:_MOST_NAMED])}{more}"
        )
    return judged


def _told_apart(entries: list[Entry], known: set[str], accept: Collection[str], problems: list[str]) -> list[Entry]:
    """Without those of new names that look like another's who is known or was there before."""
    first: dict[str, datetime] = {}
    for entry in entries:
        first[entry.student] = min(first.get(entry.student, entry.when), entry.when)
    sure = {*known, *accept, *(entry.student for entry in entries if _name(entry) == entry.student)}
    rank = {name: (name not in sure, first.get(name, datetime.max), name) for name in {*known, *first}}
    doubles = {}
    for name, others in look_alikes(rank).items():
        other = min(others, key=rank.__getitem__)
        if name in first and name not in sure and rank[other] < rank[name]:
            doubles[name] = other
    for entry in entries:
        if entry.student in doubles:
            other = doubles[entry.student]
            problems.append(
                f"{entry.path}{spelled(entry.path.name)} stays there, as {entry.student} looks like "
                f"{other}{spelled(other)}: if both are students, collect it with --accept {shlex.quote(entry.student)}"
            )
    return [entry for entry in entries if entry.student not in doubles]


def _name(entry: Entry) -> str:
    """The owner's name; empty for oneself."""
    import pwd

    if entry.uid == os.getuid():
        return ""
    try:
        return pwd.getpwuid(entry.uid).pw_name
    except KeyError:
        return f"user {entry.uid}"


def _is_user(name: str) -> bool:
    import pwd

    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def waiting(api: Any, assignment: str) -> int:
    """How many students have submitted to the exchange what may be collected and was not."""
    inbox, app = _inbox(api.exchange_root, api.course_id), _collector(api)
    newest: dict[str, datetime] = {}
    for entry in sift(api.coursedir, assignment, inbox, check_owner=getattr(app, "check_owner", True)).entries:
        newest[entry.student] = max(newest.get(entry.student, entry.when), entry.when)
    collected = {student: timestamp(api, assignment, student) for student in newest}
    return sum((collected[student] or datetime.min) < when for student, when in newest.items())


def _collector(api: Any) -> Any:
    return api.exchange.Collect(coursedir=api.coursedir, authenticator=api.authenticator, parent=api)


def _inbox(exchange: str, course_id: str) -> Path:
    return Path(exchange, course_id, "inbound")
