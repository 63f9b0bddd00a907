"""Standings in a notebook: a table or a sentence, without names, and without SQLAlchemy for a learner."""

from __future__ import annotations

import subprocess
import sys

import pytest

from grader.errors import GraderError, UnknownExercise
from grader.leaderboard.board_actions import SOURCE_VARIABLE, standings
from grader.leaderboard.site import publish
from grader.leaderboard.store import Store


@pytest.fixture
def published(tmp_path, verdict):
    """A store in `private` and its publication in `site`."""
    with Store(tmp_path / "private/leaderboard.sqlite") as store:
        run = store.start_run("softmax", "f")
        store.add_entry(run.id, "Xaverius", "x", verdict("1", speed=1.7))
        store.add_entry(run.id, "Quentin", "q", verdict("2", wrong=1))
        store.close_run(run.id, "finished")
        publish(store, tmp_path / "site")
        return tmp_path, store.pseudonyms()


@pytest.mark.parametrize("source", ["site", "site/standings.json", "private/leaderboard.sqlite"])
def test_standings_are_read_from_whatever_holds_them(published, source):
    """A published folder, its JSON and a store show the same table, as HTML and as text."""
    folder, names = published
    view = standings("softmax", folder / source)
    for shown in (view._repr_html_(), str(view)):
        assert names["Xaverius"] in shown
        assert "1.700" in shown
        assert "8 of 9 cases right" in shown
        assert "Xaverius" not in shown
    assert view == standings("softmax", folder / "site")


def test_the_environment_says_where_they_are(published, monkeypatch):
    """An administrator sets a variable once, and notebooks need no path."""
    folder, _ = published
    monkeypatch.setenv(SOURCE_VARIABLE, str(folder / "site"))
    assert standings("softmax").boards


def test_a_store_or_json_in_this_folder_is_found(published, monkeypatch):
    """In the course folder no path is needed either."""
    folder, _ = published
    monkeypatch.delenv(SOURCE_VARIABLE, raising=False)
    monkeypatch.chdir(folder / "private")
    assert standings("softmax").boards
    monkeypatch.chdir(folder / "site")
    assert standings("softmax").boards


def test_no_standings_are_a_sentence(published, monkeypatch, tmp_path):
    """Missing standings give a message in the notebook, not an error."""
    folder, _ = published
    assert "no standings yet" in standings("vector_add", folder / "site")._repr_html_()
    monkeypatch.delenv(SOURCE_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    assert "your instructor" in str(standings("softmax"))


def test_a_wrong_source_or_exercise_is_one_sentence(tmp_path):
    """The message names a path without standings, or an unknown id."""
    with pytest.raises(GraderError, match="cannot be read"):
        standings("softmax", tmp_path)
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(GraderError, match="has no standings in it"):
        standings("softmax", tmp_path / "x.json")
    with pytest.raises(UnknownExercise):
        standings("sofmax", tmp_path)


def test_published_standings_are_shown_without_sqlalchemy(published):
    """A learner's machine needs neither SQLAlchemy nor torch to show published standings."""
    folder, _ = published
    code = (
        "import sys; sys.modules['sqlalchemy'] = sys.modules['torch'] = None\n"
        "from grader.leaderboard.board_actions import standings\n"
        f"print(standings('softmax', {str(folder / 'site')!r}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "1.700" in done.stdout
