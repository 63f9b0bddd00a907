"""Verdicts and runs in one SQLite file: written once, never overwritten, whole after a kill."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import sqlite3
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy import ForeignKey, ForeignKeyConstraint, LargeBinary, String, Text
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from grader.errors import GraderError
from grader.verdict import Environment, Verdict

# The tables of a leaderboard store, as SQLAlchemy maps them.

APPLICATION_ID = 0x67726C62  # "grlb", in SQLite's header: tells a store from any other SQLite file
SCHEMA_VERSION = 2


class Base(DeclarativeBase):
    """The metadata of a store."""


class RunRow(Base):
    """One session on one machine, measuring every submission of one exercise."""

    __tablename__ = "runs"
    __table_args__ = ({"sqlite_autoincrement": True},)

    id: Mapped[int] = mapped_column(primary_key=True)
    exercise: Mapped[str] = mapped_column(String(100), index=True)
    fingerprint: Mapped[str] = mapped_column(String(64))
    state: Mapped[str] = mapped_column(String(10))  # open, finished, abandoned
    started_at: Mapped[str] = mapped_column(String(40))
    finished_at: Mapped[str] = mapped_column(String(40), default="")
    environment: Mapped[str] = mapped_column(Text, default="")  # JSON; empty until the first verdict is there
    grader: Mapped[str] = mapped_column(String(100), default="")


class VerdictRow(Base):
    """A verdict, written once: `key` is the hash of what was graded, and each run measures anew."""

    __tablename__ = "verdicts"

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    submission_sha256: Mapped[str] = mapped_column(String(64))
    document: Mapped[str] = mapped_column(Text)  # Verdict.to_dict() as JSON
    written_at: Mapped[str] = mapped_column(String(40))


class EntryRow(Base):
    """A student's place in a run: a verdict, or the sentence that says why there is none."""

    __tablename__ = "entries"
    __table_args__ = (ForeignKeyConstraint(["run_id", "verdict_key"], ["verdicts.run_id", "verdicts.key"]),)

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    student: Mapped[str] = mapped_column(String(500), primary_key=True)
    origin: Mapped[str] = mapped_column(Text)
    submission_sha256: Mapped[str] = mapped_column(String(64), default="")
    verdict_key: Mapped[str | None] = mapped_column(String(64))
    problem: Mapped[str] = mapped_column(Text, default="")


class SecretRow(Base):
    """The key from which a course's pseudonyms are made: one row."""

    __tablename__ = "secret"

    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[bytes] = mapped_column(LargeBinary(32))


class PseudonymRow(Base):
    """The name under which a student is published: kept, so that a newcomer can never change it."""

    __tablename__ = "pseudonyms"

    student: Mapped[str] = mapped_column(String(500), primary_key=True)
    pseudonym: Mapped[str] = mapped_column(String(100), unique=True)


# The file of a leaderboard store: made, looked at before it is touched, opened.

_SQLITE_HEADER = b"SQLite format 3\x00"


def open_database(path: Path, *, create: bool) -> sa.Engine:
    """An engine on the store at `path`; a missing one is made if `create`.

    Raises:
        GraderError: there is none, or it is no store, damaged, of another version or out of reach. It stays as it is.
    """
    if not path.exists() and not create:
        raise GraderError(f"There is no leaderboard store at {path}; `grader leaderboard run EXERCISE` makes one.")
    with store_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        # It will hold students' names and the key of their pseudonyms: for its owner alone.
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        is_new = _is_new(path)
        engine = sa.create_engine(sa.URL.create("sqlite", database=str(path)), connect_args={"timeout": 30})
        sa.event.listen(engine, "connect", _set_pragmas)
        if is_new:
            _make_tables(engine)
    return engine


@contextlib.contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Turns what SQLite and the system say of the file at `path` into one sentence."""
    try:
        yield
    except (sa.exc.IntegrityError, sa.exc.ProgrammingError):
        raise  # ours, not the file's
    except (sa.exc.DatabaseError, sqlite3.DatabaseError) as error:
        raise _damaged(path, getattr(error, "orig", None) or error) from error
    except OSError as error:
        raise GraderError(f"The leaderboard store {path} cannot be used: {error.strerror or error}.") from error


def _is_new(path: Path) -> bool:
    """Whether the file is empty. It is read without a way to change it, so that what is no store stays as it is."""
    left = f"{path} was left as it is; name another file with --store, or move this one away."
    with path.open("rb") as file:
        header = file.read(len(_SQLITE_HEADER))
    if not header:
        return True
    if header != _SQLITE_HEADER:
        raise GraderError(f"This is no leaderboard store (it is not an SQLite database). {left}")
    address = f"{path.as_uri()}?mode=ro"
    with contextlib.closing(sqlite3.connect(address, uri=True, isolation_level=None, timeout=30)) as connection:
        connection.execute("BEGIN")  # one look: another process may be making the store between two of these questions
        (health,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if health != "ok":
        raise _damaged(path, health)
    if not tables and not application:
        return True  # a process was killed while it made the store
    if application != APPLICATION_ID:
        raise GraderError(f"This SQLite database belongs to another program, not to the leaderboard. {left}")
    if version != SCHEMA_VERSION:
        mend = "update the grader, or name" if version > SCHEMA_VERSION else "a run measures everything anew: name"
        raise GraderError(
            f"The leaderboard store {path} has schema {version}, and this grader knows {SCHEMA_VERSION}; "
            f"{mend} another file with --store. The file was left as it is."
        )
    return False


def _make_tables(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")  # sqlite3 begins none before DDL, and half a store is none
        Base.metadata.create_all(connection)
        secret = sa.insert(SecretRow).prefix_with("OR IGNORE")  # another process may have made the store meanwhile
        connection.execute(secret.values(id=1, key=secrets.token_bytes(32)))
        connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.exec_driver_sql(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _set_pragmas(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")  # a verdict costs seconds of a GPU, a sync milliseconds
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _damaged(path: Path, why: object) -> GraderError:
    reason = " ".join(str(why).replace("*** in database main ***", "").split())  # SQLite's may have several lines
    return GraderError(
        f"The leaderboard store {path} cannot be read or written ({reason}). It was left as it is; "
        "put a copy back, or name another file with --store."
    )


# Verdicts and runs in one SQLite file: written once, never overwritten, whole after a kill.


@dataclass(frozen=True)
class Run:
    """One session. `environment` is that of its first verdict, None before it."""

    id: int
    exercise: str
    fingerprint: str
    state: Literal["open", "finished", "abandoned"]
    started_at: str
    finished_at: str
    environment: Environment | None
    grader: str


@dataclass(frozen=True)
class Entry:
    """A student's place in a run. No verdict: `problem` says why, in one sentence."""

    student: str
    origin: str
    submission_sha256: str
    verdict: Verdict | None
    problem: str


def graded_key(verdict: Verdict, exercise_fingerprint: str) -> str:
    """The hash of what was graded: the submission, the exercise, the grader and the machine."""
    environment = verdict.environment
    graded = (
        verdict.submission_sha256,
        verdict.exercise,
        exercise_fingerprint,
        verdict.grader,
        environment.device,
        environment.gpu,
    )
    return hashlib.sha256(json.dumps(graded).encode()).hexdigest()


class Store:
    """The store of one course at `path`, made where there is none (unless `create` is false).

    The file holds students' names and the key of their pseudonyms, so only its owner may read it.

    Raises:
        GraderError: the file is no store, is damaged, is of a newer grader, or cannot be used. It is left as it is.
    """

    def __init__(self, path: Path | str, *, create: bool = True) -> None:
        self.path = Path(path).absolute()
        self._engine = open_database(self.path, create=create)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Lets the file go; what was written is in it."""
        self._engine.dispose()

    # -- runs

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """One run at a time; the system lets the lock go when the process that holds it dies.

        Raises:
            GraderError: another process is measuring into this store, or its lock is another user's.
        """
        lock = Path(f"{self.path}.lock")
        with store_errors(lock):
            file = _lock_file(lock)
        with os.fdopen(file) as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise GraderError(
                    f"Another leaderboard run is writing to {self.path}; wait until it has ended."
                ) from None
            yield

    def open_run(self, exercise_id: str) -> Run | None:
        """The run of this exercise that was begun and neither finished nor abandoned."""
        query = sa.select(RunRow).where(RunRow.exercise == exercise_id, RunRow.state == "open")
        with self._session() as session:
            row = session.scalars(query.order_by(RunRow.id.desc())).first()
            return _run(row) if row else None

    def start_run(self, exercise_id: str, exercise_fingerprint: str) -> Run:
        """Begins a run."""
        with self._session() as session:
            row = RunRow(exercise=exercise_id, fingerprint=exercise_fingerprint, state="open", started_at=_now())
            session.add(row)
            session.flush()
            return _run(row)

    def close_run(self, run_id: int, state: Literal["finished", "abandoned"]) -> None:
        """Ends a run: finished ones are published, abandoned ones are kept and never shown."""
        with self._session() as session:
            row = session.get_one(RunRow, run_id)
            row.state, row.finished_at = state, _now()

    def finished_runs(self) -> list[Run]:
        """Every finished run, newest first."""
        query = sa.select(RunRow).where(RunRow.state == "finished").order_by(RunRow.id.desc())
        with self._session() as session:
            return [_run(row) for row in session.scalars(query)]

    # -- verdicts and entries

    def verdict(self, run_id: int, submission_sha256: str) -> Verdict | None:
        """What this run measured of this submission (a run has one exercise and one machine, so this is enough)."""
        query = sa.select(VerdictRow.document).where(
            VerdictRow.run_id == run_id, VerdictRow.submission_sha256 == submission_sha256
        )
        with self._session() as session:
            document = session.scalars(query).first()
            return Verdict.from_dict(json.loads(document)) if document else None

    def add_entry(self, run_id: int, student: str, origin: str, verdict: Verdict) -> None:
        """Writes a student's verdict, in one transaction with the entry that names it.

        A verdict that is there already stays as it is.
        """
        with self._session() as session:
            run = session.get_one(RunRow, run_id)
            key = graded_key(verdict, run.fingerprint)
            if not run.environment and verdict.status != "unusable":
                run.environment, run.grader = json.dumps(asdict(verdict.environment)), verdict.grader
            if session.get(VerdictRow, (run_id, key)) is None:
                session.add(
                    VerdictRow(
                        run_id=run_id,
                        key=key,
                        submission_sha256=verdict.submission_sha256,
                        document=json.dumps(verdict.to_dict()),
                        written_at=_now(),
                    )
                )
                session.flush()  # before the entry, whose foreign key points at it
            session.merge(
                EntryRow(
                    run_id=run_id,
                    student=student,
                    origin=origin,
                    submission_sha256=verdict.submission_sha256,
                    verdict_key=key,
                    problem="",
                )
            )

    def add_unusable(self, run_id: int, student: str, origin: str, problem: str, submission_sha256: str = "") -> None:
        """Writes that nothing could be measured, and why (one sentence); the hash where there was a text to measure."""
        with self._session() as session:
            session.merge(
                EntryRow(
                    run_id=run_id,
                    student=student,
                    origin=origin,
                    submission_sha256=submission_sha256,
                    verdict_key=None,
                    problem=problem,
                )
            )

    def keep_only(self, run_id: int, students: set[str]) -> None:
        """Removes the entries of all others from a run; its verdicts stay."""
        others = {entry.student for entry in self.entries(run_id)} - students
        with self._session() as session:
            for student in others:
                session.delete(session.get_one(EntryRow, (run_id, student)))

    def entries(self, run_id: int) -> list[Entry]:
        """The entries of a run, by student."""
        query = (
            sa.select(EntryRow, VerdictRow.document)
            .outerjoin(VerdictRow, (VerdictRow.run_id == EntryRow.run_id) & (VerdictRow.key == EntryRow.verdict_key))
            .where(EntryRow.run_id == run_id)
            .order_by(EntryRow.student)
        )
        with self._session() as session:
            return [
                Entry(
                    student=row.student,
                    origin=row.origin,
                    submission_sha256=row.submission_sha256,
                    verdict=Verdict.from_dict(json.loads(document)) if document else None,
                    problem=row.problem,
                )
                for row, document in session.execute(query)
            ]

    # -- pseudonyms

    def secret(self) -> bytes:
        """The key from which this course's pseudonyms are made."""
        with self._session() as session:
            return session.get_one(SecretRow, 1).key

    def pseudonyms(self) -> dict[str, str]:
        """Student to pseudonym, for all that have one."""
        with self._session() as session:
            return {row.student: row.pseudonym for row in session.scalars(sa.select(PseudonymRow))}

    def add_pseudonyms(self, names: dict[str, str]) -> None:
        """Keeps new pseudonyms; one that is taken meanwhile, or a student who has one, changes nothing."""
        insert = sa.insert(PseudonymRow).prefix_with("OR IGNORE")
        with self._session() as session:
            for student, pseudonym in names.items():
                session.execute(insert.values(student=student, pseudonym=pseudonym))

    @contextlib.contextmanager
    def _session(self) -> Iterator[Session]:
        with store_errors(self.path), Session(self._engine, expire_on_commit=False) as session, session.begin():
            yield session


def _lock_file(path: Path) -> int:
    """A descriptor of a file that only its owner can open: whoever can, can lock it, and so keep every run waiting.

    It is none of the database's, since closing any of those would drop SQLite's own locks.
    """
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(file, 0o600)
        except BaseException:
            os.close(file)
            raise
    except PermissionError:
        if not path.exists():
            raise
        raise GraderError(
            f"{path} belongs to another user, who could keep every run waiting; remove it, or name another store with "
            "--store."
        ) from None
    return file


def _run(row: RunRow) -> Run:
    environment = None
    if row.environment:
        data = json.loads(row.environment)
        environment = Environment(**{**data, "notes": tuple(data["notes"])})
    return Run(
        row.id,
        row.exercise,
        row.fingerprint,
        row.state,  # type: ignore[arg-type]
        row.started_at,
        row.finished_at,
        environment,
        row.grader,
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
