"""The store keeps verdicts unchanged, and gives one sentence for files that it cannot use."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from grader.errors import GraderError
from grader.leaderboard import store as store_module
from grader.leaderboard.store import Store, graded_key
from grader.verdict import Failure, Finding


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"findings": (Finding("rule", "Line 3 calls `x`.", 3), Finding("clock", "c"), Finding("disturbed", "d"))},
        {"failure": Failure("implausible", "4096 × 4096 in 1 µs: not believed.")},
        {"failure": Failure("limit", "It held 5 GB of memory.")},
        {"sm_clock_mhz": 1980, "memory_clock_mhz": 3201, "temperature_c": 41, "notes": ("one", "two")},
        {"clock": "CUDA events"},
    ],
    ids=["plain", "findings", "implausible", "limit", "NVML", "clock"],
)
def test_a_verdict_comes_back_as_it_was_written(tmp_path, verdict, facts):
    """A reopened store has the same data in it: findings, refused claims and the timing record, too."""
    given = verdict(**facts)
    with Store(tmp_path / "s.sqlite") as store:
        run = store.start_run("softmax", "f")
        store.add_entry(run.id, "ann", "ann.py", given)
    with Store(tmp_path / "s.sqlite") as store:
        (entry,) = store.entries(run.id)
        assert entry.verdict == given
        assert store.verdict(run.id, given.submission_sha256) == given
        assert store.open_run("softmax").environment == given.environment


def test_a_submission_without_a_verdict_has_its_hash(tmp_path):
    """A text that the judge did not survive is recorded, so that it is not tried again in the same run."""
    with Store(tmp_path / "s.sqlite") as store:
        run = store.start_run("softmax", "f")
        store.add_unusable(run.id, "ann", "ann.py", "The judge stopped.", "a" * 64)
        store.add_unusable(run.id, "ben", "ben.py", "There is no file.")
        assert [entry.submission_sha256 for entry in store.entries(run.id)] == ["a" * 64, ""]


def test_a_verdict_is_written_once(tmp_path, verdict):
    """A second verdict on the same submission in a run does not replace the first."""
    with Store(tmp_path / "s.sqlite") as store:
        run = store.start_run("softmax", "f")
        store.add_entry(run.id, "ann", "ann.py", verdict(speed=1.5))
        store.add_entry(run.id, "ben", "ben.py", verdict(speed=9.9))
        kept = {entry.verdict for entry in store.entries(run.id)}
    assert kept == {verdict(speed=1.5)}


@pytest.mark.parametrize(
    "other",
    [
        {"source": "def softmax(x, out): pass"},
        {"exercise_id": "vector_add"},
        {"gpu": "NVIDIA H200"},
        {"gpu": ""},
    ],
)
def test_the_key_tells_apart_what_was_graded(verdict, other):
    """Another source, exercise or machine gives another key."""
    assert graded_key(verdict(), "f") != graded_key(verdict(**other), "f")


def test_the_key_tells_apart_versions_of_the_exercise(verdict):
    """A change of the exercise's module gives another key; a second measurement gives the same."""
    assert graded_key(verdict(), "f") != graded_key(verdict(), "g")
    assert graded_key(verdict(speed=1.5), "f") == graded_key(verdict(speed=2.5), "f")


def _foreign(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE grades (student TEXT)")
    connection.close()


def _of_schema(path: Path, version: int) -> None:
    Store(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()


def _damaged(path: Path) -> None:
    Store(path).close()
    data = bytearray(path.read_bytes())
    data[4096:8192] = b"\xff" * 4096
    path.write_bytes(data)


def _truncated(path: Path) -> None:
    Store(path).close()
    path.write_bytes(path.read_bytes()[:5000])


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: path.write_text("student,grade\n"), "not an SQLite database"),
        (_foreign, "another program"),
        (lambda path: _of_schema(path, 99), "schema 99.*update the grader"),
        (lambda path: _of_schema(path, 1), "schema 1,.*a run measures everything again"),
        (_damaged, "cannot be read"),
        (_truncated, "cannot be read"),
    ],
    ids=["text", "foreign", "newer", "older", "damaged", "truncated"],
)
def test_a_file_that_is_no_store_is_named_and_left_as_it_is(tmp_path, make, says):
    """One sentence says what is wrong with the file, which is not changed."""
    path = tmp_path / "s.sqlite"
    make(path)
    before = path.read_bytes()
    with pytest.raises(GraderError, match=says) as caught:
        Store(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == before


def test_damage_that_is_met_later_is_one_sentence_too(tmp_path, verdict):
    """A file that is damaged while the store is open gives a GraderError."""
    path = tmp_path / "s.sqlite"
    with Store(path) as store:
        run = store.start_run("softmax", "f")
    opened = Store(path)
    path.write_bytes(b"SQLite format 3\0" + b"\xff" * 20_000)
    with pytest.raises(GraderError, match="cannot be read or written"):
        opened.entries(run.id)
    opened.close()


def test_a_folder_is_no_store(tmp_path):
    """The message names a path that cannot be a file."""
    with pytest.raises(GraderError, match=str(tmp_path)):
        Store(tmp_path)


def test_a_store_that_is_only_read_is_not_made(tmp_path):
    """Opening a missing store for reading creates no file."""
    with pytest.raises(GraderError, match="There is no leaderboard store"):
        Store(tmp_path / "s.sqlite", create=False)
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_was_being_made_when_its_process_died_is_made_again(tmp_path):
    """An empty database, as a kill in the first milliseconds leaves it, becomes a store."""
    path = tmp_path / "s.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    with Store(path) as store:
        assert len(store.secret()) == 32


def test_a_store_is_made_whole_or_not_at_all(tmp_path, monkeypatch):
    """A process that ends before the mark leaves no half store that looks like another program's."""
    path = tmp_path / "s.sqlite"
    with monkeypatch.context() as patched:
        patched.setattr(store_module, "SCHEMA_VERSION", "no number")  # SQLite stops here, before the commit
        with pytest.raises(GraderError):
            Store(path)
    with Store(path) as store:
        assert len(store.secret()) == 32


def test_only_its_owner_reads_a_store(tmp_path):
    """The file and its companions have students' names in them: nobody else may read them."""
    with Store(tmp_path / "s.sqlite") as store:
        store.start_run("softmax", "f")
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes["s.sqlite-wal"] == modes["s.sqlite"] == 0o600


def test_an_odd_path_is_the_path_that_is_used(tmp_path):
    """Characters with a meaning in a URL have none in a file's name."""
    path = tmp_path / "a ?mode=ro #%20é.sqlite"
    Store(path).close()
    Store(path, create=False).close()
    assert path.stat().st_size > 0


def test_one_run_at_a_time(tmp_path):
    """While a process holds the lock another gets a message; when it dies the lock is free."""
    path = tmp_path / "s.sqlite"
    hold = f"""from grader.leaderboard.store import Store
with Store({str(path)!r}).lock():
    print("held", flush=True)
    input()"""
    with (
        Store(path) as store,
        subprocess.Popen([sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child,
    ):
        assert child.stdout.readline() == b"held\n"
        with pytest.raises(GraderError, match="Another leaderboard run"), store.lock():
            pass
        child.kill()
        child.wait()
        with store.lock():
            pass


def test_nobody_else_can_hold_the_lock(tmp_path):
    """Only the owner can open the lock, even one that existed before: other users could block every run with it."""
    lock = tmp_path / "s.sqlite.lock"
    with Store(tmp_path / "s.sqlite") as store:
        for _ in range(2):
            with store.lock():
                assert stat.S_IMODE(lock.stat().st_mode) == 0o600
            lock.chmod(0o644)


def test_a_lock_that_is_a_link_is_not_followed(tmp_path):
    """A link in place of the lock creates no file at its target, and gives a sentence with the lock's path."""
    lock = tmp_path / "s.sqlite.lock"
    lock.symlink_to(tmp_path / "elsewhere")
    with Store(tmp_path / "s.sqlite") as store, pytest.raises(GraderError, match=re.escape(str(lock))), store.lock():
        pass
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("call", ["open", "fchmod"])
def test_a_lock_of_another_user_is_named(tmp_path, monkeypatch, call):
    """A lock of another user's, or one that cannot be closed to others, gives a message with a remedy."""

    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    (tmp_path / "s.sqlite.lock").touch()
    with Store(tmp_path / "s.sqlite") as store, monkeypatch.context() as patched:
        patched.setattr(os, call, refuse)
        with pytest.raises(GraderError, match=r"s\.sqlite\.lock belongs to another user.*remove it"), store.lock():
            pass


def test_two_processes_may_make_the_store_at_once(tmp_path):
    """If several processes open a missing store at the same time, all get the same one."""
    path = tmp_path / "s.sqlite"
    ask = (
        f"from grader.leaderboard.store import Store\ninput()\nwith Store({str(path)!r}) as s: print(s.secret().hex())"
    )
    children = [
        subprocess.Popen([sys.executable, "-c", ask], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for child in children:
        child.stdin.write("\n")
        child.stdin.flush()
    secrets = {child.communicate()[0] for child in children}
    assert len(secrets) == 1
    assert len(secrets.pop()) == 65
