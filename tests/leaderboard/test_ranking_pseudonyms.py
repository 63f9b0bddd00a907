"""Pseudonyms are stable, unique, and reveal nothing without the key."""

from __future__ import annotations

import re

from grader.leaderboard.ranking import assign, pseudonym
from grader.leaderboard.store import Store

KEY = bytes(range(32))


def test_a_pseudonym_is_readable():
    """It is two words and two digits."""
    assert re.fullmatch(r"[a-z]+-[a-z]+-\d\d", pseudonym(KEY, "ann"))


def test_a_pseudonym_hangs_on_key_and_student_alone():
    """A student's pseudonym is always the same; another student, or another course's key, gives another."""
    assert pseudonym(KEY, "ann") == pseudonym(KEY, "ann")
    assert pseudonym(KEY, "ann") != pseudonym(KEY, "ben")
    assert pseudonym(KEY, "ann") != pseudonym(KEY[::-1], "ann")


def test_names_of_a_large_course_are_all_different(tmp_path):
    """Among 2000 students, some with colliding names, no two share one."""
    students = [f"student{number}" for number in range(2000)]
    assert len({pseudonym(KEY, student) for student in students}) < len(students), "no collision: the test is idle"
    with Store(tmp_path / "s.sqlite") as store:
        names = assign(store, students)
    assert len(set(names.values())) == len(students)


def test_a_taken_name_is_passed_over():
    """A student whose name is taken gets the next one, always the same."""
    first = pseudonym(KEY, "ann")
    second = pseudonym(KEY, "ann", {first})
    assert second != first
    assert second == pseudonym(KEY, "ann", {first})


def test_a_newcomer_changes_nobodys_name(tmp_path):
    """Given names are kept when students join, and when the store is opened again."""
    with Store(tmp_path / "s.sqlite") as store:
        before = assign(store, [f"s{number}" for number in range(0, 600, 2)])
    with Store(tmp_path / "s.sqlite") as store:
        after = assign(store, [f"s{number}" for number in range(600)])
    assert {student: after[student] for student in before} == before


def test_a_name_that_another_process_took_is_made_again(tmp_path, monkeypatch):
    """Two publications at once end with different names, none of them lost."""
    with Store(tmp_path / "s.sqlite") as store:
        taken = pseudonym(store.secret(), "ann")
        kept = store.pseudonyms()
        store.add_pseudonyms({"ben": taken})
        real, stale = store.pseudonyms, [kept]
        monkeypatch.setattr(store, "pseudonyms", lambda: stale.pop() if stale else real())
        names = assign(store, ["ann"])
    assert names["ann"] != taken


def test_courses_do_not_share_a_key(tmp_path):
    """Each store draws its own secret."""
    with Store(tmp_path / "a.sqlite") as one, Store(tmp_path / "b.sqlite") as other:
        assert one.secret() != other.secret()
