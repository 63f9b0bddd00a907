"""Verdicts and runs in one SQLite file: written once, never overwritten, whole after a kill."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import sqlalchemy as sa
from sqlalchemy.orm import Session

from grader.errors import GraderError
from grader.leaderboard.database import open_database, store_errors
from grader.leaderboard.tables import EntryRow, PseudonymRow, RunRow, SecretRow, VerdictRow
from grader.verdict import Environment, Verdict

__all__ = ["Entry", "Run", "Store", "graded_key"]


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
