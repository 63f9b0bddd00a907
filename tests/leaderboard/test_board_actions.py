"""The `grader leaderboard` commands: run, publish and show."""

from __future__ import annotations

import json

import pytest

import grader.judge.service
from grader.authoring import stubs
from grader.errors import GraderError, MachineLacks, UnknownExercise
from grader.judge.sandbox import launch
from grader.leaderboard import board_actions


@pytest.fixture
def judged(monkeypatch, judge):
    """Replace the real judge by the fake one, which records its device."""

    class Judge:
        def __init__(self, device, sandbox):
            judge.device, judge.sandbox = device, sandbox

        def __enter__(self):
            return judge

        def __exit__(self, *_):
            judge.closed = True

    monkeypatch.setattr(grader.judge.service, "Judge", Judge)
    monkeypatch.setattr("grader.judge.sandbox.must_be_caged", lambda: None)  # nothing runs
    return judge


def test_run_publish_show(judged, course, text_of, tmp_path, monkeypatch):
    """The three commands need no options in the course folder."""
    folder = course({"Xaverius": text_of("x"), "Quentin": None})
    monkeypatch.chdir(folder)
    outcome = board_actions.run("softmax", device="cuda")
    assert (judged.device, judged.sandbox, judged.closed) == ("cuda", True, True)
    assert (folder / "leaderboard.sqlite").exists()
    assert json.loads(json.dumps(outcome.to_dict()))["measured"] == 1
    assert "1 measured" in outcome.as_text()

    report = board_actions.publish(tmp_path / "site")
    assert report.exercises == ("softmax",)
    assert json.loads(json.dumps(report.to_dict()))["files"][-1] == "index.html"

    view = board_actions.show("softmax")
    assert "1.500" in str(view)
    assert "Xaverius" not in str(view) + json.dumps(view.to_dict())
    named = board_actions.show("softmax", names=True)
    assert "Xaverius" in str(named)
    assert "Quentin" in str(named)
    assert sorted(named.to_dict()["names"].values()) == ["Quentin", "Xaverius"]
    assert "Xaverius" not in named._repr_html_()


def test_the_store_lies_in_the_course_or_where_it_is_said(judged, course, text_of, tmp_path, monkeypatch):
    """Without --store it is the course's store, with it the given file; no other is created."""
    monkeypatch.chdir(tmp_path)
    folder = course({"ann": text_of("a")})
    board_actions.run("softmax", folder)
    board_actions.run("softmax", folder, tmp_path / "other.sqlite")
    assert (folder / "leaderboard.sqlite").exists()
    assert (tmp_path / "other.sqlite").exists()
    assert not (tmp_path / "leaderboard.sqlite").exists()


def test_no_sandbox_reaches_the_judge(judged, course, text_of):
    """With `sandbox=False` the judge has no sandbox."""
    board_actions.run("softmax", course({"ann": text_of("a")}), sandbox=False)
    assert judged.sandbox is False


def test_without_a_sandbox_no_board_is_run(tmp_path, monkeypatch):
    """The message says why, and no store is created."""
    monkeypatch.setattr("grader.judge.sandbox.bubblewrap.find", lambda: None)
    launch.decided.cache_clear()
    with pytest.raises(MachineLacks, match="bubblewrap is not installed"):
        board_actions.run("softmax", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_call_makes_no_store(judged, tmp_path, monkeypatch):
    """A wrong exercise, course or store gives one sentence and leaves no file."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnknownExercise):
        board_actions.run("sofmax")
    with pytest.raises(GraderError, match="There is no submission"):
        board_actions.run("softmax")
    with pytest.raises(GraderError, match="There is no leaderboard store"):
        board_actions.publish(tmp_path / "site")
    with pytest.raises(GraderError, match="There is no leaderboard store"):
        board_actions.show("softmax")
    with pytest.raises(UnknownExercise):
        board_actions.show("sofmax")
    assert list(tmp_path.iterdir()) == []


def test_the_real_judge_is_asked(tmp_path):
    """The real judge in the simulator grades right, unwritten and unusable submissions."""
    (tmp_path / "ann.py").write_text(stubs.solution("vector_add"), encoding="utf-8")
    (tmp_path / "ben.py").write_text(stubs.unsolved("vector_add"), encoding="utf-8")
    (tmp_path / "cid.py").write_text("", encoding="utf-8")
    outcome = board_actions.run("vector_add", tmp_path, device="simulator")
    assert (outcome.measured, outcome.unusable) == (2, 1)
    view = board_actions.show("vector_add", tmp_path / "leaderboard.sqlite", names=True)
    (board,) = view.boards
    assert board.rows == ()
    assert {view.names[entry.pseudonym]: entry.reason for entry in board.unranked} == {
        "ann": "all right; speed needs a GPU",
        "ben": "not written yet",
        "cid": "could not be graded",
    }
