"""The names under which students appear on the boards: a pseudonym, one that they chose, or none."""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from grader.classroom import course_folder as folder
from grader.classroom.answers import Result
from grader.classroom.student_names import is_name, skeleton
from grader.errors import ClassroomError, GraderError
from grader.exercises import EXERCISES
from grader.leaderboard.ranking import assign, pseudonym
from grader.leaderboard.standings import LIMIT_NAME, REFERENCE_NAME
from grader.leaderboard.store import Store
from grader.words import plural

_HIDE = "-"
_LENGTHS = range(2, 25)
_BETWEEN_WORDS = re.compile(r"[\s_.@+-]+")
_LIKE_A_PSEUDONYM = re.compile(r"[a-z]+-[a-z]+-\d\d")


@dataclass(frozen=True)
class NamesResult(Result):
    """How many students appear under a chosen name, under a pseudonym again, and not at all."""

    chosen: int
    pseudonyms: int
    hidden: int

    def to_text(self) -> str:
        return (
            f"{plural(self.chosen, 'chosen name')}, {plural(self.pseudonyms, 'pseudonym')}, "
            f"{plural(self.hidden, 'student')} not shown. Publish the boards again."
        )


def import_names(course: Path, file: Path, store: Path) -> NamesResult:
    """Set the names of the students in a CSV file with the columns `id` and `name`.

    An empty name means the pseudonym, `-` that the student is not shown. Nothing is changed if a name cannot be used.

    Raises:
        ClassroomError: the file cannot be read, or a name is not one, is another student's, or looks like one.
        GraderError: there is no store.
    """
    wanted = _read(file)
    with Store(store, create=False) as opened:
        kept = opened.pseudonyms()
        others = {student: name for student, name in kept.items() if student not in wanted}
        given = {student: name for student, name in wanted.items() if name not in ("", _HIDE)}
        people = {student: {student} for student in (*kept, *wanted)} | _people(course)
        _check(file, given, [*others.values()], people)
        assign(opened, wanted)
        for student, name in wanted.items():
            opened.set_hidden(student, name == _HIDE)
            if not name and not _LIKE_A_PSEUDONYM.fullmatch(kept.get(student, "")):
                own = pseudonym(opened.secret(), student, [*opened.pseudonyms().values(), *given.values()])
                opened.set_published_name(student, own)
        _rename(opened, given)
    hidden = sum(name == _HIDE for name in wanted.values())
    return NamesResult(len(given), len(wanted) - len(given) - hidden, hidden)


def published_name(course: Path, student: str) -> str | None:
    """The student's name on the boards; empty if the student is not shown, None if the course has no usable board."""
    from grader.leaderboard.board_actions import STORE_NAME

    path = Path(course) / STORE_NAME
    if not path.is_file():
        return None
    try:
        with Store(path, create=False) as store:
            return "" if student in store.hidden() else assign(store, [student])[student]
    except GraderError:  # feedback does not need the board, and the board's own commands report it
        return None


def _rename(store: Store, given: Mapping[str, str]) -> None:
    """Give all names at once, also if two students exchange theirs."""
    taken = store.pseudonyms()
    for student in given:
        if taken[student] in given.values():
            own = pseudonym(store.secret(), student, [*store.pseudonyms().values(), *given.values()])
            store.set_published_name(student, own)
    for student, name in given.items():
        store.set_published_name(student, name)


def _check(file: Path, given: Mapping[str, str], others: list[str], people: Mapping[str, set[str]]) -> None:
    reserved = {REFERENCE_NAME, LIMIT_NAME, *(b.label for each in EXERCISES.values() for b in each.baselines)}
    taken = _keys(others) | _keys(reserved)
    keys = {student: _keys(names) for student, names in people.items()}
    for student, name in given.items():
        theirs = set().union(*(found for other, found in keys.items() if other != student)) - keys.get(student, set())
        mine = _keys([name])
        if not is_name(name) or len(name) not in _LENGTHS:
            why = "is not a name of 2 to 24 visible letters of one script, digits and single spaces"
        elif _LIKE_A_PSEUDONYM.fullmatch(name):
            why = "looks like a pseudonym"
        elif mine & taken:
            why = "is taken, or looks like one that is"
        elif mine & theirs:
            why = "is another student's name"
        else:
            taken |= mine
            continue
        raise ClassroomError(f"{file}: the name {name!r} of {student} {why}.")


def _keys(names: Iterable[str]) -> set[str]:
    """Equal for names that readers may confuse: by case, look-alike letters, accents, marks, spaces or word order."""
    found = set()
    for name in names:
        for spelled in (name, name.casefold()):  # a capital I looks like l, but is a capital i
            words = _BETWEEN_WORDS.split(spelled)
            found |= {_drawn("".join(order)) for order in (words, sorted(words, key=_drawn))}
    return found - {""}


def _drawn(text: str) -> str:
    return skeleton(text).replace("i", "l")  # one name may have a capital I as an i and another as an l


def _people(course: Path) -> dict[str, set[str]]:
    """The ids, addresses and names of the students in the gradebook."""
    found = {}
    with folder.api(course).gradebook as gradebook:
        for student in gradebook.students:
            names = [student.first_name or "", student.last_name or ""]
            email = student.email or ""
            found[student.id] = {student.id, email, email.partition("@")[0], *names, " ".join(names)}
    return found


def _read(file: Path) -> dict[str, str]:
    try:
        rows = list(csv.DictReader(file.read_text(encoding="utf-8-sig").splitlines()))
        return {row["id"].strip(): unicodedata.normalize("NFC", (row["name"] or "").strip()) for row in rows}
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ClassroomError(f"{file} cannot be read as a table: {error}.") from None
    except (KeyError, AttributeError):
        raise ClassroomError(f"{file} needs the columns `id` and `name`.") from None
