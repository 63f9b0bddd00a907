"""The store of a course's leaderboard: runs, verdicts, entries and pseudonyms in one SQLite file."""

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

APPLICATION_ID = 0x67726C62  # "grlb", in the header of the SQLite file
SCHEMA_VERSION = 2
_SQLITE_HEADER = b"SQLite format 3\x00"


class Base(DeclarativeBase):
    """The metadata of a store."""


class RunRow(Base):
    """A session on one machine that measures every submission of one exercise."""

    __tablename__ = "runs"
    __table_args__ = ({"sqlite_autoincrement": True},)

    id: Mapped[int] = mapped_column(primary_key=True)
    exercise: Mapped[str] = mapped_column(String(100), index=True)
    fingerprint: Mapped[str] = mapped_column(String(64))
    state: Mapped[str] = mapped_column(String(10))  # open, finished, abandoned
    started_at: Mapped[str] = mapped_column(String(40))
    finished_at: Mapped[str] = mapped_column(String(40), default="")
    environment: Mapped[str] = mapped_column(Text, default="")  # JSON; empty before the first verdict
    grader: Mapped[str] = mapped_column(String(100), default="")


class VerdictRow(Base):
    """A verdict of one run; `key` is the hash of everything that was graded."""

    __tablename__ = "verdicts"

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    submission_sha256: Mapped[str] = mapped_column(String(64))
    document: Mapped[str] = mapped_column(Text)  # Verdict.to_dict() as JSON
    written_at: Mapped[str] = mapped_column(String(40))


class EntryRow(Base):
    """A student's result in a run: a verdict, or the reason why there is none."""

    __tablename__ = "entries"
    __table_args__ = (ForeignKeyConstraint(["run_id", "verdict_key"], ["verdicts.run_id", "verdicts.key"]),)

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    student: Mapped[str] = mapped_column(String(500), primary_key=True)
    origin: Mapped[str] = mapped_column(Text)
    submission_sha256: Mapped[str] = mapped_column(String(64), default="")
    verdict_key: Mapped[str | None] = mapped_column(String(64))
    problem: Mapped[str] = mapped_column(Text, default="")


class SecretRow(Base):
    """The key from which a course's pseudonyms are derived, in one row."""

    __tablename__ = "secret"

    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[bytes] = mapped_column(LargeBinary(32))


class PseudonymRow(Base):
    """The published name of a student, kept so that new students cannot change it."""

    __tablename__ = "pseudonyms"

    student: Mapped[str] = mapped_column(String(500), primary_key=True)
    pseudonym: Mapped[str] = mapped_column(String(100), unique=True)


class HiddenRow(Base):
    """A student who is not shown on the boards."""

    __tablename__ = "hidden"

    student: Mapped[str] = mapped_column(String(500), primary_key=True)


class DeadlineRow(Base):
    """The deadline for the work of a run: ISO 8601, UTC."""

    __tablename__ = "deadlines"

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    due: Mapped[str] = mapped_column(String(40))


def open_database(path: Path, *, create: bool) -> sa.Engine:
    """An engine on the store at `path`, which is created if it is missing and `create` is true.

    Raises:
        GraderError: it is missing, not a store, damaged, of another version or inaccessible. It is not changed.
    """
    if not path.exists() and not create:
        raise GraderError(f"There is no leaderboard store at {path}; `grader leaderboard run EXERCISE` creates one.")
    with store_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        # Students' names and the key of their pseudonyms are only for the owner.
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        is_new = _is_new(path)
        engine = sa.create_engine(sa.URL.create("sqlite", database=str(path)), connect_args={"timeout": 30})
        sa.event.listen(engine, "connect", _set_pragmas)
        if is_new:
            _make_tables(engine)
        else:
            newer = [Base.metadata.tables[name] for name in ("hidden", "deadlines")]  # than some stores
            Base.metadata.create_all(engine, tables=newer)
    return engine


@contextlib.contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and the system about the file at `path` into a GraderError."""
    try:
        yield
    except (sa.exc.IntegrityError, sa.exc.ProgrammingError):
        raise  # a bug in the grader
    except (sa.exc.DatabaseError, sqlite3.DatabaseError) as error:
        raise _damaged(path, getattr(error, "orig", None) or error) from error
    except OSError as error:
        raise GraderError(f"The leaderboard store {path} cannot be used: {error.strerror or error}.") from error


def _is_new(path: Path) -> bool:
    """Whether the file is empty. It is opened read-only, so that a file that is not a store is never changed."""
    kept = f"{path} was not changed; name another file with --store, or move this one away."
    with path.open("rb") as file:
        header = file.read(len(_SQLITE_HEADER))
    if not header:
        return True
    if header != _SQLITE_HEADER:
        raise GraderError(f"This is not a leaderboard store (not an SQLite database). {kept}")
    address = f"{path.as_uri()}?mode=ro"
    with contextlib.closing(sqlite3.connect(address, uri=True, isolation_level=None, timeout=30)) as connection:
        connection.execute("BEGIN")  # a consistent view: another process may be creating the store
        (health,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if health != "ok":
        raise _damaged(path, health)
    if not tables and not application:
        return True  # a process was killed while creating the store
    if application != APPLICATION_ID:
        raise GraderError(f"This SQLite database belongs to another program, not to the leaderboard. {kept}")
    if version != SCHEMA_VERSION:
        remedy = "update the grader, or name" if version > SCHEMA_VERSION else "a run measures everything again: name"
        raise GraderError(
            f"The leaderboard store {path} has schema {version}, and this grader knows {SCHEMA_VERSION}; "
            f"{remedy} another file with --store. The file was not changed."
        )
    return False


def _make_tables(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")  # sqlite3 begins no transaction before DDL
        Base.metadata.create_all(connection)
        secret = sa.insert(SecretRow).prefix_with("OR IGNORE")  # another process may have created the store meanwhile
        connection.execute(secret.values(id=1, key=secrets.token_bytes(32)))
        connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.exec_driver_sql(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _set_pragmas(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")  # a verdict takes seconds on a GPU, a sync milliseconds
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _damaged(path: Path, why: object) -> GraderError:
    reason = " ".join(str(why).replace("*** in database main ***", "").split())  # SQLite's may have several lines
    return GraderError(
        f"The leaderboard store {path} cannot be read or written ({reason}). It was not changed; "
        "restore a copy, or name another file with --store."
    )


@dataclass(frozen=True)
class Run:
    """A session; `environment` is that of its first verdict, or None. `due`: the deadline for its work, or empty."""

    id: int
    exercise: str
    fingerprint: str
    finished_at: str
    environment: Environment | None
    grader: str
    due: str = ""


@dataclass(frozen=True)
class Entry:
    """A student's result in a run; without a verdict, `problem` is a sentence that says why."""

    student: str
    submission_sha256: str
    verdict: Verdict | None
    problem: str


def graded_key(verdict: Verdict, exercise_fingerprint: str) -> str:
    """The hash of the submission, the exercise, the grader and the machine."""
    machine = (verdict.environment.device, verdict.environment.gpu)
    graded = (verdict.submission_sha256, verdict.exercise, exercise_fingerprint, verdict.grader, *machine)
    return hashlib.sha256(json.dumps(graded).encode()).hexdigest()


class Store:
    """The store of one course at `path`, which is created if it is missing and `create` is true.

    Only the file's owner can read it, because it has students' names and the key of their pseudonyms in it.

    Raises:
        GraderError: the file cannot be used, for example because it is not a store. It is not changed.
    """

    def __init__(self, path: Path | str, *, create: bool = True) -> None:
        self.path = Path(path).absolute()
        self._engine = open_database(self.path, create=create)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._engine.dispose()

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Allow one run at a time; the lock ends with the process that holds it.

        Raises:
            GraderError: another process is measuring into this store, or the lock file belongs to another user.
        """
        lock = Path(f"{self.path}.lock")
        with store_errors(lock):
            file = _lock_file(lock)
        with os.fdopen(file) as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise GraderError(f"Another leaderboard run is writing to {self.path}; wait for it to end.") from None
            yield

    def open_run(self, exercise_id: str) -> Run | None:
        """The run of this exercise that is neither finished nor abandoned."""
        query = sa.select(RunRow).where(RunRow.exercise == exercise_id, RunRow.state == "open")
        with self._session() as session:
            row = session.scalars(query.order_by(RunRow.id.desc())).first()
            return _run(row, session) if row else None

    def start_run(self, exercise_id: str, exercise_fingerprint: str) -> Run:
        with self._session() as session:
            row = RunRow(exercise=exercise_id, fingerprint=exercise_fingerprint, state="open", started_at=_now())
            session.add(row)
            session.flush()
            return _run(row, session)

    def set_due(self, run_id: int, due: str) -> None:
        """Say which deadline a run counts; empty for none."""
        with self._session() as session:
            session.merge(DeadlineRow(run_id=run_id, due=due))

    def close_run(self, run_id: int, state: Literal["finished", "abandoned"]) -> None:
        """End a run. Finished runs are published; abandoned ones are kept and never shown."""
        with self._session() as session:
            row = session.get_one(RunRow, run_id)
            row.state, row.finished_at = state, _now()

    def finished_runs(self) -> list[Run]:
        """Every finished run, newest first."""
        query = sa.select(RunRow).where(RunRow.state == "finished").order_by(RunRow.id.desc())
        with self._session() as session:
            return [_run(row, session) for row in session.scalars(query)]

    def verdict(self, run_id: int, submission_sha256: str) -> Verdict | None:
        """The verdict of this run on a submission."""
        query = sa.select(VerdictRow.document).where(
            VerdictRow.run_id == run_id, VerdictRow.submission_sha256 == submission_sha256
        )
        with self._session() as session:
            return _verdict(session.scalars(query).first())

    def add_entry(self, run_id: int, student: str, origin: str, verdict: Verdict, newest: bool = False) -> None:
        """Write a student's entry and its verdict in one transaction. An existing verdict is kept, unless `newest`."""
        with self._session() as session:
            run = session.get_one(RunRow, run_id)
            key = graded_key(verdict, run.fingerprint)
            if not run.environment and verdict.status != "unusable":
                run.environment, run.grader = json.dumps(asdict(verdict.environment)), verdict.grader
            known = session.get(VerdictRow, (run_id, key))
            if known is not None and newest:
                known.document, known.written_at = json.dumps(verdict.to_dict()), _now()
            if known is None:
                session.add(
                    VerdictRow(
                        run_id=run_id,
                        key=key,
                        submission_sha256=verdict.submission_sha256,
                        document=json.dumps(verdict.to_dict()),
                        written_at=_now(),
                    )
                )
                session.flush()  # before the entry, which refers to it
            result = {"submission_sha256": verdict.submission_sha256, "verdict_key": key, "problem": ""}
            session.merge(EntryRow(run_id=run_id, student=student, origin=origin, **result))

    def add_unusable(self, run_id: int, student: str, origin: str, problem: str, submission_sha256: str = "") -> None:
        """Write an entry without a verdict; `problem` is a sentence that says why. An unreadable file has no hash."""
        with self._session() as session:
            result = {"submission_sha256": submission_sha256, "verdict_key": None, "problem": problem}
            session.merge(EntryRow(run_id=run_id, student=student, origin=origin, **result))

    def keep_only(self, run_id: int, students: set[str]) -> None:
        """Remove the entries of all other students from a run; its verdicts are kept."""
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
                Entry(row.student, row.submission_sha256, _verdict(document), row.problem)
                for row, document in session.execute(query)
            ]

    def secret(self) -> bytes:
        """The key from which this course's pseudonyms are derived."""
        with self._session() as session:
            return session.get_one(SecretRow, 1).key

    def pseudonyms(self) -> dict[str, str]:
        """The pseudonym of each student who has one."""
        with self._session() as session:
            return {row.student: row.pseudonym for row in session.scalars(sa.select(PseudonymRow))}

    def add_pseudonyms(self, names: dict[str, str]) -> None:
        """Add pseudonyms, except names that are taken and students who have one."""
        insert = sa.insert(PseudonymRow).prefix_with("OR IGNORE")
        with self._session() as session:
            for student, pseudonym in names.items():
                session.execute(insert.values(student=student, pseudonym=pseudonym))

    def set_published_name(self, student: str, name: str) -> None:
        """Replace a student's pseudonym.

        Raises:
            GraderError: another student has this name.
        """
        taken = {each: other for other, each in self.pseudonyms().items()}
        if taken.get(name, student) != student:
            raise GraderError(f"The name {name!r} is taken.")
        with self._session() as session:
            session.merge(PseudonymRow(student=student, pseudonym=name))

    def hidden(self) -> set[str]:
        """The students who are not shown on the boards."""
        with self._session() as session:
            return set(session.scalars(sa.select(HiddenRow.student)))

    def set_hidden(self, student: str, hidden: bool) -> None:
        """Leave a student out of the boards, or show the student again."""
        with self._session() as session:
            row = session.get(HiddenRow, student)
            if hidden and row is None:
                session.add(HiddenRow(student=student))
            elif not hidden and row is not None:
                session.delete(row)

    @contextlib.contextmanager
    def _session(self) -> Iterator[Session]:
        with store_errors(self.path), Session(self._engine, expire_on_commit=False) as session, session.begin():
            yield session


def _lock_file(path: Path) -> int:
    """A descriptor of a file that only its owner can open, so that other users cannot lock it and block every run.

    It is not a file of the database's, because closing one of those would drop SQLite's own locks.
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
            f"{path} belongs to another user, who could block every run; remove it, or name another store with --store."
        ) from None
    return file


def _run(row: RunRow, session: Session) -> Run:
    environment = None
    if row.environment:
        data = json.loads(row.environment)
        environment = Environment(**{**data, "notes": tuple(data["notes"])})
    deadline = session.get(DeadlineRow, row.id)
    due = deadline.due if deadline else ""
    return Run(row.id, row.exercise, row.fingerprint, row.finished_at, environment, row.grader, due)


def _verdict(document: str | None) -> Verdict | None:
    return Verdict.from_dict(json.loads(document)) if document else None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
