"""The tables of a leaderboard store, as SQLAlchemy maps them."""

from __future__ import annotations

from sqlalchemy import ForeignKey, ForeignKeyConstraint, LargeBinary, String, Text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

__all__ = ["APPLICATION_ID", "SCHEMA_VERSION", "Base", "EntryRow", "PseudonymRow", "RunRow", "SecretRow", "VerdictRow"]

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
