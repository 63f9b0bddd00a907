"""The durable queue of a course's server: a job is accepted once it is on the disk, and each is judged once."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from grader.errors import GraderError
from grader.words import plural

MOST_TRIES = 3  # of a job whose judging ends the process, or stops the judge
_MOST_WAITING = 10_000  # jobs of all students
_PLACES_S = 0.25  # how long the order of the queue is remembered
_HOUR_S = 3600.0
_RETRY_S = 60.0  # before the second try of work from the exchange; before the third, twice that
_SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    student TEXT NOT NULL,
    exercise TEXT NOT NULL,
    source TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'waiting',
    turn INTEGER NOT NULL,
    tries INTEGER NOT NULL DEFAULT 0,
    accepted_at REAL NOT NULL,
    answer TEXT NOT NULL DEFAULT '',
    final INTEGER NOT NULL DEFAULT 1
);
CREATE INDEX IF NOT EXISTS jobs_by_turn ON jobs (state, turn, number);
CREATE INDEX IF NOT EXISTS jobs_by_student ON jobs (student, turn);
CREATE TABLE IF NOT EXISTS attempts (student TEXT NOT NULL, at REAL NOT NULL);
CREATE INDEX IF NOT EXISTS attempts_by_student ON attempts (student, at);
"""
_IN_ORDER = "SELECT number, key FROM jobs WHERE state = 'waiting' ORDER BY turn, number"
# Students take turns: a job belongs to the round that is being judged, or to the one after its student's last.
_TURN = """
SELECT max(
    coalesce((SELECT max(turn) FROM jobs WHERE state = 'judging'), 0),
    coalesce((SELECT max(turn) FROM jobs WHERE state = 'done'), 0),
    coalesce((SELECT max(turn) + 1 FROM jobs WHERE student = ?), 0)
)
"""

State = Literal["waiting", "judging", "done"]


class Refused(GraderError):
    """The queue does not take a submission now; after `retry_after_s` it may."""

    def __init__(self, sentence: str, retry_after_s: float) -> None:
        super().__init__(sentence)
        self.retry_after_s = retry_after_s


@dataclass(frozen=True)
class Answer:
    """The outcome of a job: the verdict's status and points, and the report that the learner reads.

    `problem` is a sentence about why there is no verdict, or empty.
    """

    status: str = ""
    points: float = 0.0
    max_points: float = 0.0
    report: str = ""
    problem: str = ""


@dataclass(frozen=True)
class Job:
    """A student's text for an exercise, or with kind "work" a chapter that was submitted through the exchange.

    `place` counts from 1 for the next job to be judged, and is 0 for a job that does not wait.
    """

    key: str
    kind: Literal["text", "work"]
    student: str
    exercise: str  # of work: the chapter
    state: State
    place: int = 0
    answer: Answer | None = None
    source: str = ""  # only for the judge
    tries: int = 0
    accepted_at: float = 0.0  # seconds since 1970

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the student, ready for `json.dumps`."""
        said = asdict(self.answer) if self.answer is not None else {}
        return {"id": self.key, "exercise": self.exercise, "state": self.state, "place": self.place, **said}


@dataclass(frozen=True)
class Limits:
    """How many submissions a student may send per hour, and how many may wait."""

    per_hour: int = 20
    waiting: int = 10


class JobQueue:
    """The queue in an SQLite file, which is created if it is missing. Any number of threads and processes may use it.

    `clock` returns seconds since 1970.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._places: tuple[float, dict[str, int]] = (-1.0, {})
        with contextlib.suppress(FileExistsError):  # students' names and texts are only for the owner
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        self._connection = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
        self._connection.row_factory = sqlite3.Row
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")  # accepted jobs outlive a loss of power
        self._connection.executescript(_SCHEMA)

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def submit(self, student: str, exercise: str, source: str, version: str, limits: Limits) -> tuple[Job, bool]:
        """Accept a text, or find the job that has it already; return the job, and whether it is new.

        `version` is that of the exercise: after a change, the same text is a new job. So it is if the outcome of the
        old one may differ the next time, or if the student has sent another text since: the newest one counts.

        Raises:
            Refused: the student has sent too many, or too many jobs wait.
        """
        key, now = _key("text", student, exercise, version, source), self._clock()
        with self._transaction() as db:
            row = db.execute("SELECT * FROM jobs WHERE key = ?", (key,)).fetchone()
            is_new = row is None or (row["state"] == "done" and not (row["final"] and _is_newest(db, row)))
            if is_new:
                self._refuse_too_many(db, student, now, limits)
                db.execute("DELETE FROM jobs WHERE key = ?", (key,))
                db.execute("INSERT INTO attempts VALUES (?, ?)", (student, now))
                _insert(db, key, "text", student, exercise, source, now)
                row = db.execute("SELECT * FROM jobs WHERE key = ?", (key,)).fetchone()
        return self._job(row, fresh=is_new), is_new

    def enter_work(self, student: str, chapter: str, stamp: str) -> bool:
        """Add a chapter that a student submitted at the time `stamp` through the exchange, unless it is there.

        If it was judged, and its outcome may differ the next time, it waits again, after a pause and a few times only.

        Returns:
            Whether it waits now and did not before.
        """
        key, now = _key("work", student, chapter, stamp, ""), self._clock()
        with self._transaction() as db:
            row = db.execute("SELECT * FROM jobs WHERE key = ?", (key,)).fetchone()
            if row is None:
                _insert(db, key, "work", student, chapter, "", now)
                return True
            is_due = now >= row["accepted_at"] + _RETRY_S * row["tries"]
            if row["state"] != "done" or row["final"] or row["tries"] >= MOST_TRIES or not is_due:
                return False
            again = "UPDATE jobs SET state = 'waiting', turn = ?, accepted_at = ? WHERE key = ?"
            db.execute(again, (_next_turn(db, student), now, key))
        return True

    def claim(self) -> Job | None:
        """Take the next job, for the only process that judges. `resume` gives it back if that process ends.

        A job that ended that process several times is done, without a verdict.
        """
        with self._transaction() as db:
            for number, key in db.execute(_IN_ORDER).fetchall():
                begun = "UPDATE jobs SET state = 'judging', tries = tries + 1 WHERE number = ? AND tries < ?"
                if db.execute(begun, (number, MOST_TRIES)).rowcount:
                    return _for_judge(db.execute("SELECT * FROM jobs WHERE number = ?", (number,)).fetchone())
                _end(db, key, Answer(problem="The judge stopped on this submission: ask your instructor."), True)
        return None

    def upcoming(self, most: int) -> list[Job]:
        """The next texts to judge, in order."""
        with self._lock:
            query = "SELECT * FROM jobs WHERE state = 'waiting' AND kind = 'text' ORDER BY turn, number LIMIT ?"
            rows = self._connection.execute(query, (most,)).fetchall()
        return [_for_judge(row) for row in rows]

    def finish(self, key: str, answer: Answer, *, final: bool = True) -> None:
        """Record the outcome of a job. With `final` false, the student may send the same text again."""
        with self._transaction() as db:
            _end(db, key, answer, final)

    def give_back(self, key: str) -> None:
        """Let a claimed job wait again."""
        with self._transaction() as db:
            db.execute("UPDATE jobs SET state = 'waiting' WHERE key = ? AND state = 'judging'", (key,))

    def resume(self) -> int:
        """Let the jobs wait again whose judging a killed process began; return their number."""
        with self._transaction() as db:
            return db.execute("UPDATE jobs SET state = 'waiting' WHERE state = 'judging'").rowcount

    def job(self, key: str, student: str) -> Job | None:
        """A student's own job."""
        with self._lock:
            row = self._connection.execute(
                "SELECT * FROM jobs WHERE key = ? AND student = ?", (key, student)
            ).fetchone()
        return None if row is None else self._job(row)

    def recent(self, student: str) -> list[Job]:
        """A student's 20 newest jobs, the newest first."""
        with self._lock:
            rows = self._connection.execute(
                "SELECT * FROM jobs WHERE student = ? ORDER BY number DESC LIMIT 20", (student,)
            ).fetchall()
        return [self._job(row) for row in rows]

    def waiting(self) -> int:
        """The number of jobs that wait."""
        with self._lock:
            return int(self._connection.execute("SELECT count(*) FROM jobs WHERE state = 'waiting'").fetchone()[0])

    def _refuse_too_many(self, db: sqlite3.Connection, student: str, now: float, limits: Limits) -> None:
        db.execute("DELETE FROM attempts WHERE at <= ?", (now - _HOUR_S,))
        sent, first = db.execute("SELECT count(*), min(at) FROM attempts WHERE student = ?", (student,)).fetchone()
        if sent >= limits.per_hour:
            raise Refused(
                f"You have sent {plural(sent, 'submission')} within an hour, the most that this class allows.",
                first + _HOUR_S - now,
            )
        own = "SELECT count(*) FROM jobs WHERE state = 'waiting' AND student = ?"
        if (waits := db.execute(own, (student,)).fetchone()[0]) >= limits.waiting:
            raise Refused(
                f"You have {plural(waits, 'submission')} waiting already: send this one after a verdict.", 10.0
            )
        if db.execute("SELECT count(*) FROM jobs WHERE state = 'waiting'").fetchone()[0] >= _MOST_WAITING:
            raise Refused("The queue of this class is full: try again later.", 60.0)

    def _job(self, row: sqlite3.Row, *, fresh: bool = False) -> Job:
        answer = Answer(**json.loads(row["answer"])) if row["answer"] else None
        place = self._place(row["key"], fresh) if row["state"] == "waiting" else 0
        return Job(row["key"], row["kind"], row["student"], row["exercise"], row["state"], place, answer)

    def _place(self, key: str, fresh: bool) -> int:
        now, (at, places) = time.monotonic(), self._places
        if fresh or now - at > _PLACES_S or at < 0:
            with self._lock:
                rows = self._connection.execute(_IN_ORDER).fetchall()
            places = {row["key"]: place for place, row in enumerate(rows, 1)}
            self._places = (now, places)
        return places.get(key, len(places) + 1)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # after some errors SQLite has rolled it back itself
                    self._connection.execute("ROLLBACK")
                raise


def _for_judge(row: sqlite3.Row) -> Job:
    names = ("key", "kind", "student", "exercise", "state", "source", "tries", "accepted_at")
    return Job(**{name: row[name] for name in names})


def _key(*parts: str) -> str:
    """The same for the same job: a replayed request finds the one that it made."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _insert(db: sqlite3.Connection, key: str, kind: str, student: str, exercise: str, source: str, now: float) -> None:
    db.execute(
        "INSERT INTO jobs (key, kind, student, exercise, source, turn, accepted_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (key, kind, student, exercise, source, _next_turn(db, student), now),
    )


def _next_turn(db: sqlite3.Connection, student: str) -> int:
    return int(db.execute(_TURN, (student,)).fetchone()[0])


def _is_newest(db: sqlite3.Connection, row: sqlite3.Row) -> bool:
    """Whether a text is the last one that its student has sent for its exercise."""
    later = "SELECT 1 FROM jobs WHERE student = ? AND exercise = ? AND kind = 'text' AND number > ?"
    return db.execute(later, (row["student"], row["exercise"], row["number"])).fetchone() is None


def _end(db: sqlite3.Connection, key: str, answer: Answer, final: bool) -> None:
    db.execute(
        "UPDATE jobs SET state = 'done', answer = ?, final = ?, source = '' WHERE key = ?",
        (json.dumps(asdict(answer)), final, key),
    )
