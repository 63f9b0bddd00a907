"""A run measures every submission once, whatever happens meanwhile."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from grader.errors import GraderError, JudgeStopped, MachineLacks, UnknownExercise, UnusableExercise
from grader.exercises import EXERCISES, find
from grader.leaderboard import board_run as run_module
from grader.leaderboard.board_run import Deadline, handed_in, run
from grader.leaderboard.site import as_text, publish
from grader.leaderboard.standings import REFERENCE, boards
from grader.leaderboard.store import Store
from grader.verdict import Failure, Finding
from tests.pace import PACE


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "s.sqlite") as opened:
        yield opened


def _stop(source):
    raise JudgeStopped("gone")


def _entries(store):
    (newest, *_) = store.finished_runs()
    return {entry.student: entry for entry in store.entries(newest.id)}


def test_every_submission_of_a_course_is_measured(store, course, judge, text_of, verdict):
    """Each student's solution cell goes to the judge, and its verdict is in the store."""
    outcome = run("softmax", course({"ann": text_of("ann"), "ben": text_of("ben")}), store, judge)
    assert judge.graded == [text_of("ann"), text_of("ben")]
    assert (outcome.measured, outcome.unusable) == (2, 0)
    assert _entries(store)["ben"].verdict == verdict(text_of("ben"))


def test_a_board_counts_its_deadline(store, course, judge, text_of, tmp_path):
    """The last work on time is measured instead of late work; without any, the student is not on the board."""
    folder = course({name: text_of(f"{name}, late") for name in ("ann", "ben")} | {"cid": text_of("cid")})
    on_time = course({"ann": text_of("ann")}) / "submitted" / "ann" / find("softmax").chapter
    kept = shutil.copytree(on_time, tmp_path / "exchange")
    course({"ann": text_of("ann, late")})
    deadline = Deadline("2026-12-01T18:00+00:00", {"ann": kept, "ben": None})
    run("softmax", folder, store, judge, deadline=deadline)
    assert judge.graded == [text_of("ann"), text_of("cid")]
    assert set(_entries(store)) == {"ann", "cid"}
    (board,) = boards(store, "softmax")
    assert board.due == deadline.due
    assert "by 1 December 2026, 18:00 UTC, or within an extension" in as_text([board], "")
    publish(store, tmp_path / "site")
    page = (tmp_path / "site" / "softmax.html").read_text(encoding="utf-8")
    assert "1 December 2026, 18:00 UTC</time>, or within an extension." in page


def test_times_of_the_practice_clock_are_not_ranked_unless_accepted(store, course, judge, text_of, verdict):
    """The first verdict ends the run, and the message names the option."""
    judge.verdict_of = lambda source: verdict(source, practice=True)
    folder = course({"ann": text_of("ann"), "ben": text_of("ben")})
    with pytest.raises(MachineLacks, match="--practice-clock"):
        run("softmax", folder, store, judge)
    assert judge.graded == [text_of("ann")]
    assert run("softmax", folder, store, judge, practice_clock=True).measured == 2


def test_a_run_has_one_clock(store, course, judge, text_of, verdict):
    """Times of the practice clock are never in one run with times that no submission can falsify."""
    folder = course({"ann": text_of("ann"), "ben": text_of("ben")})
    judge.errors = {text_of("ben"): KeyboardInterrupt}
    judge.verdict_of = lambda source: verdict(source, practice=True)
    with pytest.raises(KeyboardInterrupt):
        run("softmax", folder, store, judge, practice_clock=True)
    judge.errors = {}
    judge.verdict_of = verdict
    outcome = run("softmax", folder, store, judge)
    assert (outcome.resumed, outcome.measured) == (False, 2)
    judge.verdict_of = lambda source: verdict(source, practice=source == text_of("ben"))
    with pytest.raises(GraderError, match="by one clock"):
        run("softmax", folder, store, judge, practice_clock=True)


def test_wrong_work_has_no_clock(store, course, judge, text_of, verdict):
    """Nothing was timed, so it fits a run of either clock."""
    judge.verdict_of = lambda source: verdict(source, wrong=source == text_of("ann"), practice=source != text_of("ann"))
    folder = course({"ann": text_of("ann"), "ben": text_of("ben")})
    assert run("softmax", folder, store, judge, practice_clock=True).measured == 2


def test_a_plain_folder_of_files_is_a_course_too(store, tmp_path, judge, text_of):
    """Without a `submitted` folder, only `<student>.py` is the student's submission."""
    (tmp_path / "ann.py").write_text(text_of("ann"))
    (tmp_path / "notes.txt").write_text("not a submission")
    run("softmax", tmp_path, store, judge)
    assert judge.graded == [text_of("ann")]


def test_an_unusable_submission_is_recorded_and_stops_nobody(store, course, tmp_path, judge, text_of):
    """A broken, a missing and an empty notebook each have a message; the others are measured."""
    folder = course({"ann": text_of("ann"), "ben": None, "cid": text_of("cid"), "dot": "", "eve": text_of("eve")})
    (folder / "submitted/cid/03_triton/03_fuse_a_softmax.ipynb").write_text("{ no notebook")
    outcome = run("softmax", folder, store, judge)
    entries = _entries(store)
    assert judge.graded == [text_of("ann"), text_of("eve")]
    assert (outcome.measured, outcome.unusable) == (2, 3)
    for student in ("ben", "cid", "dot"):
        assert entries[student].verdict is None
        assert len(entries[student].problem) > 20
    assert "There is no file" in entries["ben"].problem


@pytest.mark.parametrize("cell", ["if 0:\n pass\n" + "elif 0:\n pass\n" * 1500 + "def softmax(x, out):\n pass\n", None])
def test_whatever_the_reading_of_a_notebook_raises_stops_nobody(store, course, judge, text_of, cell, monkeypatch):
    """Each `elif` is nested in the one before it, which crashes a recursive reader."""
    folder = course({"ann": text_of("ann"), "ben": cell or text_of("ben"), "cid": text_of("cid")})
    if cell is None:
        read = run_module.from_file

        def raises(path, exercise):
            if "ben" in str(path):
                raise ZeroDivisionError("of ours")
            return read(path, exercise)

        monkeypatch.setattr(run_module, "from_file", raises)
    outcome = run("softmax", folder, store, judge)
    assert text_of("cid") in judge.graded
    assert outcome.unusable == (cell is None)
    if cell is None:
        assert "ZeroDivisionError" in _entries(store)["ben"].problem


def test_the_same_text_is_measured_once_and_shared(store, course, judge, text_of):
    """Two students with the same text share one measurement, so that neither has a second chance."""
    outcome = run("softmax", course({"ann": text_of("same"), "ben": text_of("same")}), store, judge)
    entries = _entries(store)
    assert judge.graded == [text_of("same")]
    assert (outcome.measured, outcome.shared) == (1, 1)
    assert entries["ann"].verdict == entries["ben"].verdict


def test_a_new_run_measures_anew(store, course, judge, text_of, verdict):
    """A second run measures again and keeps the first run's verdicts."""
    folder = course({"ann": text_of("ann")})
    first = run("softmax", folder, store, judge)
    judge.verdict_of = lambda source: verdict(source, speed=1.9)
    second = run("softmax", folder, store, judge)
    assert judge.graded == [text_of("ann")] * 2
    assert store.entries(first.run_id)[0].verdict == verdict(text_of("ann"), speed=1.5)
    assert store.entries(second.run_id)[0].verdict == verdict(text_of("ann"), speed=1.9)


def test_an_interrupted_run_goes_on_where_it_was(store, course, judge, text_of):
    """After Ctrl-C the same command measures the rest, in the same run."""
    folder = course({name: text_of(name) for name in ("ann", "ben", "cid")})
    judge.errors = {text_of("ben"): KeyboardInterrupt}
    with pytest.raises(KeyboardInterrupt):
        run("softmax", folder, store, judge)
    assert store.finished_runs() == []
    judge.errors = {}
    outcome = run("softmax", folder, store, judge)
    assert outcome.resumed
    assert (outcome.already_there, outcome.measured) == (1, 2)
    assert Counter(judge.graded) == {text_of("ann"): 1, text_of("ben"): 2, text_of("cid"): 1}


def test_a_submission_that_changed_meanwhile_is_measured_again(store, course, judge, text_of):
    """A continued run takes a student's newer text."""
    folder = course({"ann": text_of("old"), "ben": text_of("ben")})
    judge.errors = {text_of("ben"): KeyboardInterrupt}
    with pytest.raises(KeyboardInterrupt):
        run("softmax", folder, store, judge)
    judge.errors = {}
    course({"ann": text_of("new")})
    run("softmax", folder, store, judge)
    assert _entries(store)["ann"].verdict.submission_sha256 == judge.verdict_of(text_of("new")).submission_sha256


def test_who_withdrew_meanwhile_is_not_on_the_board(store, course, judge, text_of):
    """A continued run keeps only current submissions, measured or unusable."""
    folder = course({"ann": text_of("ann"), "ben": "nothing here", "cid": text_of("cid"), "dan": text_of("dan")})
    judge.errors = {text_of("dan"): KeyboardInterrupt}
    with pytest.raises(KeyboardInterrupt):
        run("softmax", folder, store, judge)
    assert {entry.student for entry in store.entries(store.open_run("softmax").id)} == {"ann", "ben", "cid"}
    judge.errors = {}
    for student in ("ann", "ben"):
        shutil.rmtree(folder / "submitted" / student)
    outcome = run("softmax", folder, store, judge)
    assert outcome.resumed
    assert (outcome.submissions, outcome.already_there, outcome.measured) == (2, 1, 1)
    assert set(_entries(store)) == {"cid", "dan"}


CHILD = """
import sys, time
sys.path[:0] = [{tests!r}]
import conftest
from grader.leaderboard.board_run import run
from grader.leaderboard.store import Store

class Slow(conftest.FakeJudge):
    def grade(self, source, exercise_id, **keywords):
        with open({log!r}, "a") as log:
            log.write(source.splitlines()[0] + "\\n")
        time.sleep({pause})
        return super().grade(source, exercise_id, **keywords)

with Store({store!r}) as store:
    run("softmax", {course!r}, store, Slow())
"""


def _child(tmp_path, store, folder, pause):
    values = {"log": str(tmp_path / "log"), "store": str(store), "course": str(folder), "pause": pause}
    text = CHILD.format(tests=str(Path(__file__).parent), **values)
    environment = {**os.environ, "PYTHONPATH": str(Path(run_module.__file__).parents[2])}
    return subprocess.Popen([sys.executable, "-c", text], env=environment)


def test_a_killed_run_loses_nothing_and_measures_nothing_twice(tmp_path, course, text_of, judge):
    """After several `kill -9` the run ends with the verdicts of one that was never killed."""
    students = [f"student{number}" for number in range(8)]
    folder, log = course({name: text_of(name) for name in students}), tmp_path / "log"
    for kills in (1, 2):
        child = _child(tmp_path, tmp_path / "killed.sqlite", folder, 0.2)
        deadline = time.monotonic() + 60 * PACE
        while not log.exists() or len(log.read_text().splitlines()) < 3 * kills:
            assert child.poll() is None, "the child ended by itself"
            assert time.monotonic() < deadline, "the child did not come so far"
            time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
    with Store(tmp_path / "killed.sqlite") as store:
        kept = store.entries(store.open_run("softmax").id)
        assert 2 <= len(kept) < 8
    assert _child(tmp_path, tmp_path / "killed.sqlite", folder, 0).wait() == 0

    with Store(tmp_path / "killed.sqlite") as killed, Store(tmp_path / "whole.sqlite") as whole:
        run("softmax", folder, whole, judge)
        assert len(killed.finished_runs()) == 1
        assert _entries(killed) == _entries(whole)
        assert killed.open_run("softmax") is None
    calls = Counter(log.read_text().splitlines())
    assert set(calls) == {f"# {name}" for name in students}
    assert sum(calls.values()) <= len(students) + 2, "more than what was in hand at each kill was measured twice"
    assert all(calls[f"# {entry.student}"] == 1 for entry in kept[:2])


def test_a_run_is_begun_anew_when_the_exercise_changed(store, course, judge, text_of):
    """Measurements of an older version of the exercise are not mixed with new ones."""
    old = store.start_run("softmax", "of an older version")
    store.add_entry(old.id, "ann", "", judge.verdict_of(text_of("ann")))
    outcome = run("softmax", course({"ann": text_of("ann")}), store, judge)
    assert not outcome.resumed
    assert judge.graded == [text_of("ann")]
    assert [each.id for each in store.finished_runs()] == [outcome.run_id]
    assert store.entries(old.id)


@pytest.mark.parametrize("changed", [{"gpu": "NVIDIA H200"}, {"driver": "590"}, {"torch": "2.14"}, {"gpu": ""},
                                     {"sandbox": "none: --no-sandbox was given"}])  # fmt: skip
def test_a_run_is_begun_anew_on_another_machine(store, course, judge, text_of, verdict, changed):
    """Times of two machines are never in one run: continuing on another machine measures everything again."""
    folder = course({name: text_of(name) for name in ("ann", "ben")})
    judge.errors = {text_of("ben"): KeyboardInterrupt}
    with pytest.raises(KeyboardInterrupt):
        run("softmax", folder, store, judge)
    judge.errors = {}
    judge.verdict_of = lambda source: verdict(source, **changed)
    outcome = run("softmax", folder, store, judge)
    assert not outcome.resumed
    assert outcome.measured == 2
    (finished,) = store.finished_runs()
    assert finished.environment == verdict(**changed).environment


def test_a_machine_that_changes_within_a_run_is_an_error(store, course, judge, text_of, verdict):
    """No run mixes two GPUs, not even in one session."""
    judge.verdict_of = lambda source: verdict(source, gpu="A" if source == text_of("ann") else "B")
    with pytest.raises(GraderError, match="machine changed"):
        run("softmax", course({"ann": text_of("ann"), "ben": text_of("ben")}), store, judge)


def test_a_judge_that_stops_once_is_asked_again(store, course, judge, text_of):
    """One lost process does not cost anybody a measurement."""
    judge.on_grade = lambda source: _stop(source) if len(judge.graded) == 1 else None
    assert run("softmax", course({"ann": text_of("ann")}), store, judge).measured == 1


STOPPED = "The judge stopped twice on this submission; look at it yourself."


def test_a_submission_that_the_judge_does_not_survive_stops_nobody(store, course, judge, text_of):
    """It is left to the instructor; the others are measured and the run finishes, whatever the order."""
    for student in ("ann", "ben", "cid"):
        judge.errors = {text_of(student): JudgeStopped}
        outcome = run("softmax", course({name: text_of(name) for name in ("ann", "ben", "cid")}), store, judge)
        entries = _entries(store)
        assert (outcome.measured, outcome.unusable) == (2, 1)
        assert outcome.to_look_at == (f"{student}: {STOPPED}",)
        assert STOPPED in outcome.as_text()
        assert (entries[student].verdict, entries[student].problem) == (None, STOPPED)
        assert all(entries[name].verdict for name in {"ann", "ben", "cid"} - {student})


def test_a_judge_that_stops_on_the_only_submission_is_tried_with_a_text_of_ours(store, course, judge, text_of):
    """If nobody else has submitted, a baseline shows whether the machine is at fault."""
    judge.errors = {text_of("ann"): JudgeStopped}
    outcome = run("softmax", course({"ann": text_of("ann")}), store, judge)
    assert outcome.unusable == 1
    assert judge.graded[:2] == [text_of("ann")] * 2
    assert "softmax = torch_softmax" in judge.graded[2]
    assert len(judge.graded) == 3


_NO_ANSWERS = ("transpose", "fuse")  # their baselines: a copy, and the very function to rewrite
_RANKED = [
    each.id
    for each in EXERCISES.values()
    if each.timed_cases and each.id not in _NO_ANSWERS and any(peer.harness is None for peer in each.baselines)
]


@pytest.mark.parametrize("exercise_id", _RANKED)
def test_the_text_of_ours_is_a_right_answer(quick_judge, exercise_id):
    """The control passes the whole judge, so that a broken judge is noticed."""
    verdict = quick_judge.grade(run_module._control(find(exercise_id)), exercise_id)
    assert verdict.cases
    assert all(case.passed for case in verdict.cases), verdict.failure  # it need not be what its rung asks


def test_an_exercise_that_is_not_timed_has_no_board(store, course, judge, text_of, monkeypatch):
    """Nothing is graded, and the message names the timed exercises."""
    untimed = replace(find("softmax"), id="asked", timed_cases=())
    monkeypatch.setattr(run_module, "find", {"asked": untimed}.__getitem__)
    with pytest.raises(GraderError, match=r"'asked' is not timed.*softmax"):
        run("asked", course({"ann": text_of("a")}), store, judge)
    assert judge.graded == []


def test_a_text_that_stopped_the_judge_is_not_tried_for_each_who_hands_it_in(store, course, judge, text_of):
    """Two students with the same text cost two attempts, not four, even if the run was interrupted in between."""
    folder = course({"ann": text_of("same"), "ben": text_of("ben"), "cid": text_of("same"), "dot": text_of("same")})
    judge.errors = {text_of("same"): JudgeStopped, text_of("ben"): KeyboardInterrupt}
    with pytest.raises(KeyboardInterrupt):
        run("softmax", folder, store, judge)
    del judge.errors[text_of("ben")]
    outcome = run("softmax", folder, store, judge)
    assert judge.graded.count(text_of("same")) == 2
    assert (outcome.already_there, outcome.unusable, outcome.measured) == (1, 2, 1)
    assert [entry.problem for entry in _entries(store).values()] == [STOPPED, "", STOPPED, STOPPED]


def test_a_new_run_tries_again(store, course, judge, text_of):
    """A text that stopped the judge in one run is tried again in the next."""
    folder = course({"ann": text_of("ann")})
    judge.errors = {text_of("ann"): JudgeStopped}
    run("softmax", folder, store, judge)
    judge.errors = {}
    assert run("softmax", folder, store, judge).measured == 1


def test_a_judge_that_stops_on_everything_ends_the_run(store, course, judge, text_of):
    """If the control stops it too, the machine is at fault: nobody is blamed, and the run stays open."""
    judge.on_grade = _stop
    folder = course({f"s{number}": text_of(str(number)) for number in range(9)})
    with pytest.raises(JudgeStopped):
        run("softmax", folder, store, judge)
    assert len(judge.graded) == 4
    assert store.entries(store.open_run("softmax").id) == []
    judge.on_grade = lambda source: None
    assert run("softmax", folder, store, judge).measured == 9


def test_however_many_stop_the_judge_the_others_are_measured(store, course, judge, text_of):
    """A control after each of them tells submissions that stop the judge from a broken judge."""
    stopping = ("ann", "ben", "cid", "dan", "eve")
    folder = course({name: text_of(name) for name in (*stopping, "fay")})
    judge.errors = {text_of(name): JudgeStopped for name in stopping}
    outcome = run("softmax", folder, store, judge)
    assert (outcome.measured, outcome.unusable, outcome.resumed) == (1, 5, False)
    assert [entry.problem for entry in _entries(store).values()] == [*[STOPPED] * 5, ""]
    assert [source.startswith("from typing") for source in judge.graded] == [False, False, True] * 5 + [False]


def test_a_judge_that_breaks_on_the_way_ends_the_run_and_the_next_goes_on(store, course, judge, text_of):
    """The text on which it broke is not blamed, whichever text stopped it before."""
    folder = course({name: text_of(name) for name in ("ann", "ben", "cid", "dan")})
    judge.errors = dict.fromkeys((text_of("ann"), text_of("ben")), JudgeStopped)
    judge.on_grade = lambda source: _stop(source) if text_of("cid") in judge.graded else None
    with pytest.raises(JudgeStopped):
        run("softmax", folder, store, judge)
    judge.on_grade = lambda source: None
    outcome = run("softmax", folder, store, judge)
    assert outcome.resumed
    assert [entry.problem for entry in _entries(store).values()] == [STOPPED, STOPPED, "", ""]


@pytest.mark.parametrize("error", [MachineLacks, UnusableExercise])
def test_an_error_that_only_one_submission_meets_stops_nobody(store, course, judge, text_of, error):
    """An error on one submission is left to the instructor, like a stop; the same on the control ends the run."""
    folder = course({name: text_of(name) for name in ("ann", "ben", "cid")})

    def lack(source):
        raise error("too little memory")

    judge.errors = {text_of("ben"): error}
    outcome = run("softmax", folder, store, judge)
    assert (outcome.measured, outcome.to_look_at) == (2, (f"ben: {STOPPED}",))
    judge.on_grade = lack
    with pytest.raises(error):
        run("softmax", folder, store, judge)
    assert store.entries(store.open_run("softmax").id) == []


@pytest.mark.parametrize("cut", range(1, 9))
def test_a_run_that_is_cut_anywhere_ends_as_one_that_was_not(tmp_path, course, judge, text_of, cut):
    """The texts include some that stop the judge, a shared one and an unreadable one, interrupted at any point."""
    sources = {"ann": "stops", "ben": "ben", "cid": "stops", "dot": "also stops", "eve": "eve"}
    folder = course({name: text_of(source) for name, source in sources.items()} | {"fay": None})
    judge.errors = dict.fromkeys((text_of("stops"), text_of("also stops")), JudgeStopped)

    def interrupt(source):
        if len(judge.graded) == cut:
            raise KeyboardInterrupt

    with Store(tmp_path / "whole.sqlite") as whole, Store(tmp_path / "cut.sqlite") as cut_short:
        run("softmax", folder, whole, judge)
        assert len(judge.graded) == 8
        judge.graded.clear()
        judge.on_grade = interrupt
        with pytest.raises(KeyboardInterrupt):
            run("softmax", folder, cut_short, judge)
        run("softmax", folder, cut_short, judge)
        assert _entries(cut_short) == _entries(whole)
        assert len(cut_short.finished_runs()) == 1


def test_the_judge_hears_of_what_comes(store, course, judge, text_of):
    """The judge gets the coming texts in order and once each; after a stop it gets one alone."""
    folder = course({"ann": text_of("a"), "ben": text_of("b"), "cid": text_of("a"), "dot": text_of("d"), "eve": None})
    judge.errors = {text_of("b"): JudgeStopped}
    run("softmax", folder, store, judge)
    a, b, d = (text_of(name) for name in "abd")
    assert judge.expected == [[a, b, d], [b, d], [], [d]]
    judge.expected.clear()
    run("softmax", course({"ann": text_of("a")}), store, judge)
    assert judge.expected[0] == [a, b, d]


def test_what_a_person_should_look_at_is_listed(store, course, judge, text_of, verdict):
    """Findings, refused claims and unusable files are reported to the instructor, in words that are not published."""
    findings = (Finding("rule", "Line 3 calls `torch.softmax`."),)
    held = Failure("implausible", "4096 × 4096 in 1 µs is faster than this GPU allows.")
    kinds = {"ann": {}, "ben": {"findings": findings}, "cid": {"failure": held}}
    judge.verdict_of = lambda source: verdict(source, **kinds[source.split()[1]])
    folder = course({**{name: text_of(name) for name in kinds}, "dan": None})
    outcome = run("softmax", folder, store, judge)
    assert outcome.to_look_at == (
        "ben: Rules: Line 3 calls `torch.softmax`.",
        "cid: 4096 × 4096 in 1 µs is faster than this GPU allows.",
        "dan: There is no file " + str(folder / "submitted/dan/03_triton/03_fuse_a_softmax.ipynb") + ".",
    )
    assert outcome.to_dict()["to_look_at"] == outcome.to_look_at


def test_the_sandbox_is_said(store, course, judge, text_of, verdict):
    """The outcome says that submissions ran without a sandbox."""
    judge.verdict_of = lambda source: verdict(source, sandbox="none: --no-sandbox was given")
    outcome = run("softmax", course({"ann": text_of("a")}), store, judge)
    assert "Sandbox: none: --no-sandbox was given." in outcome.as_text()


def test_progress_counts_submissions(store, course, judge, text_of):
    """Progress names the student and counts submissions, up to all of them."""
    seen = []
    run("softmax", course({"ann": text_of("a"), "ben": text_of("b")}), store, judge, lambda *what: seen.append(what))
    assert ("ben: timing", 1, 2) in seen
    assert seen[-1] == ("done", 2, 2)


def test_a_name_that_is_no_unicode_is_kept_as_text(store, course, judge, text_of):
    """A folder's name that is not UTF-8 does not stop a run."""
    run("softmax", course({os.fsdecode(b"j\xfcrgen"): text_of("a")}), store, judge)
    assert list(_entries(store)) == ["j\\udcfcrgen"]


def test_two_names_of_files_are_two_students(store, tmp_path, judge, text_of):
    """A name that is not UTF-8 and one that equals its escaped form are kept apart."""
    names = (b"j\xfcrgen", rb"j\udcfcrgen", rb"j\\udcfcrgen")
    for number, name in enumerate(names):
        (tmp_path / os.fsdecode(name + b".py")).write_text(text_of(str(number)))
    run("softmax", tmp_path, store, judge)
    assert len(_entries(store)) == 3
    assert len({entry.submission_sha256 for entry in _entries(store).values()}) == 3


def test_a_name_forges_no_line(store, tmp_path, judge, text_of):
    """A message about a student is one line, whatever a file is called."""
    forged = "mallory\n  ann: Rules: Line 3 calls `torch.softmax`.\x1b[2K\u2028\u202e"
    (tmp_path / f"{forged}.py").write_text("")
    (tmp_path / f"{forged}2.py").write_text(text_of("a"))
    judge.errors = {text_of("a"): JudgeStopped}
    seen = []
    outcome = run("softmax", tmp_path, store, judge, lambda stage, *_: seen.append(stage))
    assert len(outcome.to_look_at) == 2
    assert all(line.startswith("mallory ann: Rules") for line in outcome.to_look_at)
    assert len(seen) > 4
    for line in (*outcome.to_look_at, *seen):
        assert line.isprintable()
    assert len(outcome.as_text().splitlines()) == 4


@pytest.mark.parametrize("make", [
    lambda path, target: path.symlink_to(target),
    lambda path, target: path.symlink_to("nowhere.py"),
    lambda path, target: os.mkfifo(path),
    lambda path, target: path.mkdir(),
], ids=["link", "dangling", "fifo", "folder"])  # fmt: skip
def test_what_is_no_file_is_passed_over_and_said(store, tmp_path, course, judge, text_of, make):
    """A link leads to another student's work, or to files that only the instructor can read."""
    (tmp_path / "flat").mkdir()
    (tmp_path / "flat/ann.py").write_text(text_of("ann"))
    make(tmp_path / "flat/ben.py", tmp_path / "flat/ann.py")
    nested = course({"ann": text_of("ann"), "ben": None})
    notebook = "03_triton/03_fuse_a_softmax.ipynb"
    make(nested / "submitted/ben" / notebook, nested / "submitted/ann" / notebook)
    for folder in (tmp_path / "flat", nested):
        outcome = run("softmax", folder, store, judge)
        assert (outcome.measured, outcome.shared, outcome.unusable) == (1, 0, 1)
        (said,) = outcome.to_look_at
        assert said.startswith("ben: ")
        assert re.search("is a link, and links are not followed|is not a regular file", said)
        assert _entries(store)["ben"].verdict is None


def test_nothing_handed_in_is_said(store, tmp_path, judge):
    """An empty course, a missing course and an unknown exercise each have a message."""
    with pytest.raises(GraderError, match="There is no submission"):
        run("softmax", tmp_path, store, judge)
    with pytest.raises(GraderError, match="There is no folder"):
        run("softmax", tmp_path / "nowhere", store, judge)
    with pytest.raises(UnknownExercise):
        run("sofmax", tmp_path, store, judge)
    (tmp_path / "nbgrader_config.py").write_text("c = get_config()", encoding="utf-8")
    with pytest.raises(GraderError, match="There is no submission"):  # a course's settings are not one
        run("softmax", tmp_path, store, judge)
    assert store.open_run("softmax") is None


def test_students_without_the_chapter_are_not_in_the_run(course, text_of):
    """A student who submitted only another chapter has no entry."""
    folder = course({"ann": text_of("ann")})
    (folder / "submitted/ben/02_load_inline").mkdir(parents=True)
    assert [each.student for each in handed_in(folder, find("softmax"))] == ["ann"]


def test_the_courses_own_solution_is_measured_beside(store, course, judge, text_of, notebook):
    """Once per run, under a name that no student has; the instructor is not asked to look at it."""
    folder = course({"ann": text_of("ann")})
    source = folder / "source/03_triton/03_fuse_a_softmax.ipynb"
    source.parent.mkdir(parents=True)
    source.write_text(notebook(text_of("reference")), encoding="utf-8")
    done = run("softmax", folder, store, judge)
    assert judge.graded == [text_of("ann"), text_of("reference")]
    assert (done.submissions, done.measured) == (1, 1)
    assert {entry.student for entry in store.entries(done.run_id)} == {"ann", REFERENCE}
    source.write_text("no notebook", encoding="utf-8")
    assert run("softmax", folder, store, judge).submissions == 1
