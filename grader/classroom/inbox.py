"""The exchange's inbox, into which anyone can put anything: valid submissions, their owners and times, collecting."""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import shlex
import stat
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from grader.classroom.course_folder import first_names, graded, has_exchange_folder, must, notebooks, timestamp
from grader.classroom.student_names import is_name, look_alikes, spelled
from grader.words import on_one_line

# student+assignment+time+random, as `nbgrader submit` names an entry.
_ENTRY = re.compile(
    r"(?P<student>.+)\+[^+]+"
    r"\+(?P<when>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? [A-Za-z]{1,5})(?:\+[\w-]+)?"
)
# For the duration of a submission, and for the clocks of machines that share an exchange.
_TOLERANCE = timedelta(minutes=5)
_MOST_FILES = 10_000


class Entry(NamedTuple):
    """A submission in the inbox. `when` is the time in its name, `text`, as a naive UTC time.

    `changed_ns` is when the folder or a notebook in it last changed, by the file system's clock.
    """

    path: Path
    student: str
    when: datetime
    text: str
    uid: int
    changed_ns: int

    @property
    def changed(self) -> datetime:
        """`changed_ns` as a naive UTC time."""
        return datetime.fromtimestamp(self.changed_ns / 1e9, UTC).replace(tzinfo=None)


class Sifted(NamedTuple):
    """The entries to collect, each with the time that counts, and messages about the others."""

    entries: list[Entry]
    problems: list[str]


def entry_of(path: Path) -> Entry | None:
    """The submission at a path of the inbox, or None if it is something else."""
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
    """When a folder or a notebook in it last changed, which its owner cannot fake; None if it has too many files."""
    found = [folder.lstat().st_ctime_ns]
    with contextlib.suppress(PermissionError), os.scandir(folder) as files:  # copying it reports the error
        for number, file in enumerate(files):
            if number == _MOST_FILES:
                return None
            if file.name.endswith(".ipynb"):
                found.append(file.stat(follow_symlinks=False).st_ctime_ns)
    return max(found)


def submitted_at(api: Any, assignment: str, student: str) -> str:
    """When it was submitted, ISO 8601 in UTC; empty if that is unknown."""
    when = timestamp(api.coursedir, assignment, student)
    return f"{when.isoformat(timespec='seconds')}Z" if when else ""


def collect(api: Any, assignment: str, accept: Collection[str] = ()) -> tuple[int, list[str]]:
    """Collect new and newer submissions; return their number, and messages about the others.

    For the students in `accept`, the owners and times of their entries are not checked.

    Raises:
        ClassroomError: nbgrader cannot collect the assignment.
    """
    from nbgrader.utils import capture_log, temp_attrs

    if has_exchange_folder(api) and not _inbox(api).is_dir():
        return 0, []  # never released here: the work in submitted/ did not come through the exchange
    before = _timestamps(api, assignment)
    with temp_attrs(api.coursedir, assignment_id=assignment):
        app = _collector(api)
        app.update, app.accept = True, frozenset(accept)
        must(capture_log(app), f"{assignment} cannot be collected")
    new = sum(name not in before or before[name] != when for name, when in _timestamps(api, assignment).items())
    return new, list(getattr(app, "problems", ()))  # another kind of exchange has none


def _timestamps(api: Any, assignment: str) -> dict[str, datetime | None]:
    students = api.get_submitted_students(assignment)
    return {student: timestamp(api.coursedir, assignment, student) for student in students}


def other_notebooks(api: Any, assignment: str, student: str) -> set[str]:
    """The notebooks, without `.ipynb`, in a student's newest submission that are not the assignment's."""
    paths = _entry_paths(_inbox(api), assignment)
    entries = [entry for entry in map(entry_of, paths) if entry is not None and entry.student == student]
    if not entries:
        return set()
    with contextlib.suppress(OSError):
        names = os.listdir(max(entries, key=lambda entry: entry.when).path)
        return {name.removesuffix(".ipynb") for name in names if name.endswith(".ipynb")} - notebooks(
            api.coursedir, assignment
        )
    return set()


def sift(
    coursedir: Any, assignment: str, inbox: Path, *, check_owner: bool = True, accept: Collection[str] = ()
) -> Sifted:
    """Choose the entries to collect, and the times that count.

    If learners are users of this machine, it knows who created a folder, and when. Then an entry in another user's name
    is not collected. A time in a name that is earlier than the folder's own does not count, unless it was collected
    before.
    """
    found = [(path, entry_of(path)) for path in _entry_paths(inbox, assignment)]
    problems = [f"{path}{spelled(path.name)} is not a submission: remove it" for path, entry in found if entry is None]
    entries = [entry for _, entry in found if entry is not None]
    known = _known(coursedir)
    collected = {entry.student: timestamp(coursedir, assignment, entry.student) for entry in entries}
    if check_owner:
        entries = _owned(entries, known, collected, accept, problems)
        entries = _with_times(entries, collected, accept, problems)
    entries = _without_look_alikes(entries, known, accept, problems)
    for name in sorted(set(accept) - {entry.student for entry in entries}):
        problems.append(f"there is no entry in {name}'s name to accept")
    return Sifted(entries, [on_one_line(problem) for problem in problems])


def _known(coursedir: Any) -> set[str]:
    """The students in the gradebook or with collected work."""
    from nbgrader.api import Gradebook

    with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
        known = {student.id for student in gradebook.students}
    submitted = Path(coursedir.format_path(coursedir.submitted_directory, "", ""))
    return known | {path.parent.name for path in submitted.glob("*/[!.]*")}


def _owned(
    entries: list[Entry], known: set[str], collected: dict[str, datetime | None], accept: Collection[str],
    problems: list[str],
) -> list[Entry]:  # fmt: skip
    """The entries in their owner's name or an accepted one; all entries if learners are not users of this machine."""
    students = {*known, *(entry.student for entry in entries)}
    are_users = any(_name(entry) == entry.student for entry in entries)
    own = []
    for entry in entries:
        owner = _name(entry)
        if owner in ("", entry.student) or not (are_users or owner in students or _is_user(entry.student)):
            own.append(entry)
            continue
        problem = f"{entry.path}{spelled(entry.path.name)} is in {entry.student}'s name but was put there by {owner}"
        if entry.student in accept:
            own.append(entry)
            problems.append(f"{problem}; it is accepted")
        elif collected[entry.student] in (entry.when, entry.changed):
            remedy = f"if it is not {entry.student}'s, delete both copies"
            problems.append(f"{problem}, and is already collected: ask both; {remedy}")
        else:
            remedy = f"collect it with --accept {shlex.quote(entry.student)}"
            problems.append(f"{problem}, so it was not collected: ask both and, if it is {entry.student}'s, {remedy}")
    return own


def _with_times(
    entries: list[Entry], collected: dict[str, datetime | None], accept: Collection[str], problems: list[str]
) -> list[Entry]:
    """The entries, with the folder's time if a user's entry claims an earlier one."""
    judged, old = [], []
    for entry in entries:
        last = collected[entry.student]
        trusted = entry.student in accept or _name(entry) != entry.student
        if trusted or entry.changed <= entry.when + _TOLERANCE:
            judged.append(entry)
        elif last is not None and entry.when <= last:  # copying an exchange must not make all old work the newest
            judged.append(entry)
            if entry.changed > last + _TOLERANCE:
                old.append(entry.path.name)
        else:
            judged.append(entry._replace(when=entry.changed, text=f"{entry.changed:%Y-%m-%d %H:%M:%S.%f} UTC"))
            problems.append(
                f"{entry.path} says {entry.when:%Y-%m-%d %H:%M} but last changed {entry.changed:%Y-%m-%d %H:%M} UTC, "
                "which counts; if it was only copied since, accept the time in its name with "
                f"--accept {shlex.quote(entry.student)}"
            )
    if old:
        problems.append(
            "not collected, because they changed after the collected work but have no later time in their names, as "
            f"after copying an exchange: {first_names(old)}"
        )
    return judged


def _without_look_alikes(
    entries: list[Entry], known: set[str], accept: Collection[str], problems: list[str]
) -> list[Entry]:
    """The entries without new names that look like the name of a known or earlier student."""
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
                f"{entry.path}{spelled(entry.path.name)} was not collected, because {entry.student} looks like {other}"
                f"{spelled(other)}: if both are students, collect it with --accept {shlex.quote(entry.student)}"
            )
    return [entry for entry in entries if entry.student not in doubles]


def _name(entry: Entry) -> str:
    """The owner's name; empty if it is the current user."""
    if entry.uid == os.getuid():
        return ""
    try:
        return pwd.getpwuid(entry.uid).pw_name
    except KeyError:
        return f"user {entry.uid}"


def _is_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def waiting(api: Any, assignment: str) -> int:
    """The number of students with submissions in the exchange that can be collected and are not."""
    newest: dict[str, datetime] = {}
    for entry in _collectable(api, assignment):
        newest[entry.student] = max(newest.get(entry.student, entry.when), entry.when)
    collected = {student: timestamp(api.coursedir, assignment, student) for student in newest}
    return sum((collected[student] or datetime.min) < when for student, when in newest.items())


def ungraded(api: Any, assignment: str) -> dict[str, str]:
    """The students whose newest submission is not graded yet, collected or not, with its time as text."""
    collected, done = _timestamps(api, assignment), graded(api, assignment)
    newest = {student: when for student, when in collected.items() if when is not None and student not in done}
    for entry in _collectable(api, assignment):
        if (collected.get(entry.student) or datetime.min) < entry.when:
            newest[entry.student] = max(newest.get(entry.student, entry.when), entry.when)
    return {student: when.isoformat() for student, when in newest.items()}


def last_on_time(api: Any, assignment: str, due: Mapping[str, datetime]) -> dict[str, Path | None]:
    """The folder of each student's newest submission by `due`, or None. The exchange keeps those that were replaced."""
    found: dict[str, Entry] = {}
    for entry in _collectable(api, assignment) if due else ():
        latest = due.get(entry.student, datetime.min)
        is_faked = _checks_owner(api) and _name(entry) == entry.student and entry.changed > latest + _TOLERANCE
        if entry.when <= latest and not is_faked:
            found[entry.student] = max(found.get(entry.student, entry), entry, key=lambda each: each.when)
    return {student: found[student].path if student in found else None for student in due}


def _collectable(api: Any, assignment: str) -> list[Entry]:
    return sift(api.coursedir, assignment, _inbox(api), check_owner=_checks_owner(api)).entries


def _checks_owner(api: Any) -> bool:
    return bool(getattr(_collector(api), "check_owner", True))


def _collector(api: Any) -> Any:
    return api.exchange.Collect(coursedir=api.coursedir, authenticator=api.authenticator, parent=api)


def _inbox(api: Any) -> Path:
    return Path(api.exchange_root, api.course_id, "inbound")


def _entry_paths(inbox: Path, assignment: str) -> list[Path]:
    return sorted(inbox.glob(f"*+{assignment}+*")) if os.access(inbox, os.R_OK | os.X_OK) else []
