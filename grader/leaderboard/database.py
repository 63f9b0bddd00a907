"""The file of a leaderboard store: made, looked at before it is touched, opened."""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from grader.errors import GraderError
from grader.leaderboard.tables import APPLICATION_ID, SCHEMA_VERSION, Base, SecretRow

__all__ = ["open_database", "store_errors"]

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
